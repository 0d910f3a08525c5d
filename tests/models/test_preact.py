"""Pre-activation ResNets for small images (He et al. 2016b)."""
import pytest
import torch
from equality import count, undrawn
from torch import nn

from stepnet_mm.recording import TrajectoryRecorder
from stepnet_mm.stiffness import neural_stiffness_index

MODELS = pytest.importorskip('mmpretrain.registry').MODELS


def build(depth=20, **kwargs):
    torch.manual_seed(0)
    net = MODELS.build(dict(
        type='StepResNetCIFAR', **{'depth': depth, 'preact': True, **kwargs}))
    for module in net.modules():  # norms away from their start
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, .5, 1.5)
            nn.init.uniform_(module.bias, -.5, .5)
    return net


class Unit(nn.Module):
    """A residual unit, after the article's Fig. 1b."""

    def __init__(self, sizes, stride):
        super().__init__()
        kernels = (1, 3, 1) if len(sizes) == 4 else (3, 3)
        strided = kernels.index(3)
        self.norms = nn.ModuleList(nn.BatchNorm2d(n) for n in sizes[:-1])
        self.convs = nn.ModuleList(
            nn.Conv2d(taken, given, k, stride if i == strided else 1, k // 2,
                      bias=False)
            for i, (taken, given, k) in enumerate(
                zip(sizes, sizes[1:], kernels)))
        self.shortcut = None
        if sizes[0] != sizes[-1]:
            self.shortcut = nn.Conv2d(
                sizes[0], sizes[-1], 1, stride, bias=False)

    def forward(self, x):
        y = self.norms[0](x).relu()
        if self.shortcut is not None:
            x = self.shortcut(y)
        y = self.convs[0](y)
        for norm, conv in zip(self.norms[1:], self.convs[1:]):
            y = conv(norm(y).relu())
        return x + y


class Plain(nn.Module):
    """The whole network without a classifier, in torch alone."""

    def __init__(self, n, block):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        units, taken, factor = [], 16, 4 if block == 'bottleneck' else 1
        for width in (16, 32, 64):
            for i in range(n):
                inner = [width] * (2 if factor == 4 else 1)
                sizes = taken, *inner, width * factor
                units.append(Unit(sizes, 2 if width > 16 and i == 0 else 1))
                taken = width * factor
        self.units = nn.Sequential(*units)
        self.norm = nn.BatchNorm2d(taken)

    def forward(self, x):
        return self.norm(self.units(self.stem(x))).relu()


def pairs(net, plain):
    """The modules of both networks that hold weights, one by one."""
    yield net.conv1, plain.stem
    ours = [block for stage in net._stages() for block in stage]
    for block, unit in zip(ours, plain.units):
        for i, (norm, conv) in enumerate(zip(unit.norms, unit.convs), 1):
            yield getattr(block, f'norm{i}'), norm
            yield getattr(block, f'conv{i}'), conv
        if unit.shortcut is not None:
            yield block.downsample[0], unit.shortcut
    yield net.end_norm, plain.norm


@pytest.mark.core
@pytest.mark.parametrize('depth, block, step', [
    (20, 'bottleneck', dict(type='StepAdaptor', init_step=1)),
    (14, 'basic', None)])
def test_it_is_the_plain_network(depth, block, step):
    net = build(depth, block=block, step=step, step_blocks='all').double()
    plain = Plain(2, block).double()
    for ours, theirs in pairs(net, plain):
        theirs.load_state_dict(ours.state_dict())
    steps = sum(map(count, net.steps()))
    assert count(net) - steps == count(plain)
    for mode in (True, False):
        net.train(mode), plain.train(mode)
        x = torch.randn(2, 3, 16, 16).double()
        inputs = [x.clone().requires_grad_() for _ in range(2)]
        ours, theirs = net(inputs[0])[0], plain(inputs[1])
        torch.testing.assert_close(ours, theirs)
        ours.square().sum().backward()
        theirs.square().sum().backward()
        torch.testing.assert_close(inputs[0].grad, inputs[1].grad)
    for ours, theirs in pairs(net, plain):
        for a, b in zip(ours.buffers(), theirs.buffers()):
            torch.testing.assert_close(a, b)
        for p, q in zip(ours.parameters(), theirs.parameters()):
            torch.testing.assert_close(p.grad, q.grad)


@pytest.mark.parametrize('step, blocks, expected', [
    (None, None, 1703258), ('StepAdaptor', 'all', 1751642),
    ('StepAdaptor', 'identity', 1748954)])
def test_parameters_of_resnet_164(step, blocks, expected):
    with undrawn():
        net = MODELS.build(dict(type='StepResNetCIFAR', depth=164,
                                preact=True, step=step, step_blocks=blocks))
    assert count(net) + 257 * 10 == expected
    if blocks == 'all':
        assert round(expected / 1e6, 2) == 1.75
        assert round((expected + 257 * 90) / 1e6, 2) == 1.77


def test_the_last_stage_alone_ends_in_a_relu():
    net = build(out_indices=(0, 1, 2))
    outs = net(torch.randn(2, 3, 32, 32))
    assert [bool((out < 0).any()) for out in outs] == [True, True, False]


@pytest.mark.core
def test_frozen_stages():
    net = build(frozen_stages=2, step=dict(type='StepAdaptor', init_step=1))
    net.train()
    free = {name.partition('.')[0] for name, p in net.named_parameters()
            if p.requires_grad}
    assert free == {'layer3', 'end_norm'}
    assert not net.layer2[1].bn1.training and net.end_norm.training
    net = build(frozen_stages=3, step=None)
    net.train()
    assert not any(p.requires_grad for p in net.parameters())
    assert not net.end_norm.training


@pytest.mark.parametrize('preact', [True, False])
def test_weights_of_the_other_layout_are_refused(preact):
    state = build(preact=not preact).state_dict()
    with pytest.raises(ValueError, match=f'preact: .*={preact}.*; set '
                       f'preact={not preact}'):
        build(preact=preact).load_state_dict(state, strict=False)


@pytest.mark.core
@pytest.mark.parametrize('depth, block, step', [
    (20, 'bottleneck', 'StepAdaptor'), (14, 'basic', None)])
def test_the_recorder_sees_its_terms(depth, block, step):
    net = build(depth, block=block, step=step, step_blocks='all').eval()
    seen = {}
    for name, module in net.named_modules():
        if name.count('.') == 1 and name.startswith('layer'):
            module.register_forward_hook(
                lambda m, args, out, name=name: seen.update(
                    {name: (m, args[0].clone(), out.clone())}))
    with TrajectoryRecorder(net) as recorder, torch.no_grad():
        net(torch.randn(2, 3, 32, 32))
    assert recorder.definition == 'residual'
    expected = []
    for name in ('layer1.1', 'layer2.1', 'layer3.1'):
        module, x, out = seen[name]
        f = module.residual(x)
        delta = 1. if step is None else module.step.step_size(x, f)
        torch.testing.assert_close(out, x + f * delta)
        expected.append(neural_stiffness_index(x, x + f * delta, delta))
    torch.testing.assert_close(
        recorder.nsi, torch.stack(expected, 1), rtol=1e-3, atol=0)
    assert recorder.step.isnan().all() == (step is None)
