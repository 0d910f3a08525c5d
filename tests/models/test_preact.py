"""Pre-activation ResNets for small images (He et al. 2016b)."""
import copy
import pickle

import pytest
import torch
from equality import count, undrawn
from torch import nn

from stepnet_mm.models.fusion import can_fuse
from stepnet_mm.recording import TrajectoryRecorder, find_residual_blocks
from stepnet_mm.stiffness import neural_stiffness_index

pytestmark = pytest.mark.core
MODELS = pytest.importorskip('mmpretrain.registry').MODELS
KINDS = pytest.mark.parametrize(
    'depth, block', [(20, 'bottleneck'), (14, 'basic')])
STEPS = ['StepAdaptor', 'SEAttention', 'ECAAttention', 'CBAMAttention',
         'SRMAttention', 'SEMAttention', 'FCAAttention', 'SGEAttention',
         'MaxPoolStepAdaptor', 'ConstantStep', 'ToyStep']


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


@pytest.mark.parametrize('step', [None, dict(type='StepAdaptor',
                                             init_step=1)])
@KINDS
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
    ('StepAdaptor', 'identity', 1748954), ('SEAttention', None, 1905362)])
def test_parameters_of_resnet_164(step, blocks, expected):
    with undrawn():
        net = MODELS.build(dict(type='StepResNetCIFAR', depth=164,
                                preact=True, step=step, step_blocks=blocks))
    assert count(net) + 257 * 10 == expected
    if blocks == 'all':
        assert round(expected / 1e6, 2) == 1.75
        assert round((expected + 257 * 90) / 1e6, 2) == 1.77


def test_post_activation_with_steps_everywhere_has_too_many():
    with undrawn():
        net = MODELS.build(dict(
            type='StepResNetCIFAR', depth=164, step_blocks='all'))
    assert round((count(net) + 257 * 100) / 1e6, 2) == 1.78


@pytest.mark.parametrize('step', STEPS)
def test_every_step_trains(step):
    size = dict(dct_size=8) if step == 'FCAAttention' else {}
    groups = dict(groups=4) if step == 'SGEAttention' else {}
    net = build(11, step=dict(type=step, **size, **groups),
                step_blocks='all')
    net(torch.randn(2, 3, 32, 32))[0].square().sum().backward()
    assert len(net.steps()) == 3
    for block in (stage[0] for stage in net._stages()):
        assert not can_fuse(block)
        assert all(p.grad is not None for p in block.parameters())


@KINDS
def test_a_block_adds_f_times_step_and_no_activation(depth, block):
    net = build(depth, block=block, step='ToyStep').eval()
    last = net.layer2[1]
    x = torch.randn(2, last.step_channels, 8, 8)
    f = last.residual(x)
    assert torch.equal(last(x), x + last.step(x, f))
    assert (last(x) < 0).any()


def test_which_blocks_take_a_step():
    where = [[0], [1], [0, 1]]
    net = build(step='StepAdaptor', step_blocks=where)
    assert [[i for i, block in enumerate(stage) if block.step is not None]
            for stage in net._stages()] == where
    assert len(build(step='StepAdaptor').steps()) == 3
    assert len(build(14, block='basic', step='StepAdaptor').steps()) == 4


def test_outputs_of_all_stages():
    net = build(out_indices=(0, 1, 2))
    outs = net(torch.randn(2, 3, 32, 32))
    assert [tuple(out.shape[1:]) for out in outs] == [
        (64, 32, 32), (128, 16, 16), (256, 8, 8)]
    assert [bool((out < 0).any()) for out in outs] == [True, True, False]
    raw = build(out_indices=(1, ))(torch.randn(2, 3, 32, 32))
    assert (raw[0] < 0).any()


def test_checkpointing_and_stochastic_depth():
    net = build(step_blocks='all', drop_path_rate=.3)
    twin = build(step_blocks='all', drop_path_rate=.3, with_cp=True)
    x = torch.randn(4, 3, 32, 32)
    for model in (net, twin):
        torch.manual_seed(1)
        model(x)[0].square().sum().backward()
    for (name, p), q in zip(net.named_parameters(), twin.parameters()):
        assert torch.equal(p.grad, q.grad), name


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


def test_frozen_untrained_steps_are_refused():
    net = build(frozen_stages=1)
    net.init_weights()
    with pytest.raises(ValueError, match='frozen_stages: expected steps'):
        net.train()(torch.randn(2, 3, 32, 32))


def test_weights_of_the_plain_network_start_the_steps_at_one():
    plain, net = build(step=None).eval(), build(step_blocks='all').eval()
    net.load_state_dict(plain.state_dict(), strict=False)
    x = torch.randn(2, 3, 32, 32)
    assert torch.equal(net(x)[0], plain(x)[0])
    assert all(step.init_step == 1 for step in net.steps())


@pytest.mark.parametrize('preact', [True, False])
def test_weights_of_the_other_layout_are_refused(preact):
    state = build(preact=not preact).state_dict()
    with pytest.raises(ValueError, match=f'preact: expected .*={preact}, got '
                       f'.*; set preact={not preact}'):
        build(preact=preact).load_state_dict(state, strict=False)


@pytest.mark.parametrize('step', [None, 'StepAdaptor'])
@KINDS
def test_copies(depth, block, step):
    net = build(depth, block=block, step=step).eval()
    x = torch.randn(1, 3, 32, 32)
    for twin in (pickle.loads(pickle.dumps(net)), copy.deepcopy(net)):
        assert type(twin.layer1[0]) is type(net.layer1[0])
        assert torch.equal(twin(x)[0], net(x)[0])


@pytest.mark.parametrize('step', [None, 'ToyStep', 'StepAdaptor'])
@KINDS
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


def test_the_parts_of_a_block():
    found = find_residual_blocks(build(step='StepAdaptor'))
    assert [(b.stage, b.position) for b in found] == [
        (s, i) for s in (1, 2, 3) for i in (0, 1)]
    for block in found:
        assert block.definition == 'residual' and block.other_gates == ()
        assert block.identity is block.module.downsample
        if block.position:
            assert block.step.module is block.module.step
        else:
            assert block.residual is block.module.conv3


@pytest.mark.parametrize('wrong, match', [
    (dict(depth=18), r'depth: expected 9n\+2.*got 18'),
    (dict(depth=29, block='basic'), r'depth: expected 6n\+2.*got 29'),
    (dict(preact='yes'), "preact: expected True or False, got 'yes'"),
    (dict(zero_init_residual=True), 'zero_init_residual: expected False'),
    (dict(downsample_norm_cfg=dict(type='BN')),
     'downsample_norm_cfg: expected none')])
def test_wrong_arguments(wrong, match):
    with pytest.raises(ValueError, match=match):
        build(**wrong)


def test_it_starts_as_published():
    net = MODELS.build(dict(type='StepResNetCIFAR', depth=29, preact=True))
    net.init_weights()
    conv = net.layer3[1].conv2.weight
    assert conv.std().item() == pytest.approx((2 / (9 * 64))**.5, rel=.05)
    assert (net.layer3[1].bn3.weight == 1).all()
    assert (net.end_norm.weight == 1).all()
