"""Steps in the blocks of networks that know nothing of them."""
import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch
from equality import HRNET, assert_bound, registry
from mmcv.cnn import fuse_conv_bn
from mmengine.model import revert_sync_batchnorm
from torch import nn
from torch.fx import symbolic_trace
from torch.utils.checkpoint import checkpoint

from stepnet_mm import add_steps
from stepnet_mm.recording import find_residual_blocks


class Bottleneck(nn.Module):
    """f is the output of its last norm, and its sum is activated."""

    def __init__(self, channels=4):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 1)
        self.bn2 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)

    def residual(self, x):
        return self.bn2(self.conv2(self.relu(self.conv1(x))))

    def forward(self, x):
        out = self.residual(x)
        out += x
        return self.relu(out)


class Scaled(nn.Module):
    """f is what its dropout takes, in a layout of its own inside."""

    def __init__(self, channels=4):
        super().__init__()
        self.norm, self.mlp = nn.LayerNorm(channels), nn.Linear(
            channels, channels)
        self.gamma = nn.Parameter(torch.full((channels, 1, 1), .5))
        self.drop_path = nn.Dropout(.1)

    def residual(self, x):
        inner = self.mlp(self.norm(x.permute(0, 2, 3, 1)).tanh())
        return self.gamma * inner.permute(0, 3, 1, 2)

    def forward(self, x):
        return x + self.drop_path(self.residual(x))


class Layer(nn.Module):
    """Attention, then an FFN, on tokens; takes their places, gives a pair."""

    def __init__(self, channels=4):
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(channels) for _ in range(2))
        self.qkv, self.ffn = nn.Linear(channels, channels), nn.Sequential(
            nn.Linear(channels, 8), nn.GELU(), nn.Linear(8, channels))

    def residual(self, x):
        first = self.qkv(self.norm1(x)).softmax(1) * x
        return first + self.ffn(self.norm2(x + first))

    def forward(self, x, hw=None):
        x = x + self.qkv(self.norm1(x)).softmax(1) * x
        return x + self.ffn(self.norm2(x)), hw


class OnView(Layer):
    """Adds to the view that its last layer gives; autograd hides the sum."""
    change = staticmethod(torch.Tensor.add_)

    def forward(self, x, hw=None):
        return self.change(self.ffn(self.qkv(self.norm1(x)).tanh()), x), hw


class Multiplied(OnView):
    change = staticmethod(torch.Tensor.mul_)


class Sequence(nn.Sequential):
    """Runs all that it holds; f is its output minus its input."""

    def __init__(self):
        super().__init__(nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 1))

    def forward(self, x):
        return x + super().forward(x).tanh()


class Indexed(Sequence):
    """Takes what it holds by numbers."""

    def forward(self, x):
        y = x
        for i in range(len(self)):
            y = self[i](y)
        return x + y.tanh()


class Walking(Indexed):
    """Runs all that it holds, a step too."""

    def forward(self, x):
        y = x
        for part in self.children():
            y = part(y)
        return x + y.tanh()


class Gated(Bottleneck):
    """Its gate comes first, in a view of its own shape."""

    def forward(self, x):
        gate = self.conv1(x.mean((2, 3), keepdim=True)).view(2, -1, 1, 1)
        return x + gate * self.conv2(x).tanh()


class Merged(Bottleneck):
    """Takes one of its layers in training, another one in evaluation."""

    def forward(self, x):
        return x + (self.bn2 if self.training else self.conv1)(self.conv2(x))


class Joined(Bottleneck):
    """f is joined of parts, and reads what belongs to the layer before."""

    def forward(self, x):
        parts = [self.conv1(part) for part in x.split(1)]
        return x + self.conv2(torch.cat(parts)) * self.conv2.weight.mean()


class Reading(Bottleneck):
    """Reads the weights of the layer that gives f."""

    def forward(self, x):
        return x + self.bn2(self.conv2(x) * self.bn2.weight.mean())


class InPlace(Bottleneck):
    """Its output is its input, changed twice."""

    def forward(self, x):
        x += self.conv1(x.clone())
        x += self.conv2(x.clone())
        return x


class Net(nn.Module):
    """Two blocks of a kind behind a stem; H = W = C."""

    def __init__(self, kind):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 1)
        self.blocks = nn.ModuleList(kind() for _ in range(2))
        for p in self.parameters():
            nn.init.normal_(p, std=.5)

    def forward(self, x):
        x, tokens = self.stem(x), isinstance(self.blocks[0], Layer)
        if tokens:
            x = x.flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = block(x, (4, 4))[0] if tokens else block(x)
        return x


KINDS = pytest.mark.parametrize('kind', [Bottleneck, Scaled, Layer])
IMAGES = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(1))


def stepped(kind, step='StepAdaptor', **kwargs):
    torch.manual_seed(0)
    net = Net(kind)
    stock = copy.deepcopy(net)
    report = add_steps(net, dict(type=step, **kwargs), IMAGES)
    assert report == ['blocks.0', 'blocks.1']
    return net, stock


@pytest.mark.core
@pytest.mark.parametrize('kind', [
    Bottleneck, Scaled, Layer, Sequence, Indexed, Gated, Joined, Reading,
    pytest.param(OnView, marks=pytest.mark.skipif(
        not hasattr(torch.autograd.graph.Node, '_input_metadata'),
        reason='torch 2.1 does not say what a node takes'))])
def test_at_one_it_is_the_stock_network_and_every_step_learns(kind):
    net, stock = stepped(kind)
    assert {*stock.state_dict()} == {
        key for key in net.state_dict() if '.step.' not in key}
    for mode in (False, True):
        results = []
        for each in (net, stock):
            torch.manual_seed(1)
            results.append(each.train(mode)(IMAGES))
        assert torch.equal(*results)
    for block in net.blocks:  # at the published start some gradients are 0
        nn.init.normal_(block.step.ie.weight)
    net(IMAGES).square().sum().backward()
    assert all(p.grad.abs().sum() > 0 for name, p in net.named_parameters()
               if '.step.' in name and 'norm.bias' not in name)


@pytest.mark.core
@KINDS
def test_f_is_scaled_and_nothing_else(kind):
    net, stock = stepped(kind, 'ConstantStep', value=.25)
    net.eval(), stock.eval()
    x = stock.stem(IMAGES)
    if kind is Layer:
        x = x.flatten(2).transpose(1, 2)
    for block in stock.blocks:
        x = x + .25 * block.residual(x)
        x = x.relu() if kind is Bottleneck else x
    torch.testing.assert_close(net(IMAGES), x)


def test_the_step_comes_before_the_drop_path():
    net, seen = stepped(Scaled)[0].train(), []
    net.blocks[0].step.register_forward_pre_hook(
        lambda module, args: seen.append(args[1]))
    net(IMAGES)
    assert torch.equal(*seen, net.blocks[0].residual(net.stem(IMAGES)))


@pytest.mark.core
@KINDS
@pytest.mark.parametrize('step, kwargs', [
    ('SEAttention', dict(reduction=2)), ('SRMAttention', {})])
def test_a_step_sees_channels_where_they_are(kind, step, kwargs):
    """It has a Δt for each channel, and the same for all places."""
    net, _ = stepped(kind, step, **kwargs)
    seen = []
    for block in net.blocks:
        block.step.delta.register_forward_hook(
            lambda module, args, output: seen.append(output))
    order = torch.randperm(4)
    net.eval()(IMAGES)
    net(IMAGES[:, :, :, order]) if kind is not Bottleneck else None
    assert all(dt.shape == (2, 4, 1, 1) for dt in seen)
    if kind is not Bottleneck:  # whose convolutions see neighbours
        torch.testing.assert_close(seen[0], seen[2])


def synchronised(net):
    return revert_sync_batchnorm(nn.SyncBatchNorm.convert_sync_batchnorm(
        net)).eval()  # of which mmengine 0.10.7 makes training norms


@pytest.mark.core
@KINDS
@pytest.mark.parametrize('change', [
    copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net)),
    symbolic_trace, lambda net: torch.jit.trace(net, IMAGES), synchronised,
    fuse_conv_bn, *(pytest.param(change, marks=pytest.mark.since_torch(
        '2.5', 'graphs of attributes')) for change in (
            lambda net: torch.export.export(net, (IMAGES, )).module(),
            lambda net: torch.compile(
                net, backend='eager', fullgraph=True)))], ids=range(8))
def test_what_a_model_is_put_through(kind, change):
    net, stock = stepped(kind, 'StepAdaptor', init_step=.5)
    net.eval()
    want = net(IMAGES)
    assert not torch.allclose(want, stock.eval()(IMAGES))
    changed = change(copy.deepcopy(net))
    torch.testing.assert_close(changed(IMAGES), want, atol=1e-5, rtol=1e-4)


@KINDS
def test_mixed_precision(kind):
    net, _ = stepped(kind, 'StepAdaptor', init_step=.5)
    want = net.eval()(IMAGES)
    with torch.autocast('cpu', torch.bfloat16):
        torch.testing.assert_close(net(IMAGES).float(), want, atol=.1, rtol=.1)


def test_halves_that_overflow():
    block, x = Net(Layer).blocks[0], torch.full((2, 16, 4), 6e4)
    add_steps(block, images=x)
    block.step.max_step.fill_(1)
    with torch.no_grad():
        y = block._moved(x.half(), -x.half())
    assert y.isfinite().all()


class Checkpointed(Bottleneck):
    """Recomputes itself where one of its switches is on."""
    with_cp = use_checkpoint = own_switch = reentrant = False

    def forward(self, x):
        if x.requires_grad and (
                self.with_cp or self.use_checkpoint or self.own_switch):
            return checkpoint(super().forward, x, use_reentrant=self.reentrant)
        return super().forward(x)


@pytest.mark.parametrize('switch', ['with_cp', 'use_checkpoint'])
def test_gradients_of_a_block_that_runs_twice(switch, monkeypatch):
    monkeypatch.setattr(Checkpointed, switch, True)
    net, _ = stepped(Checkpointed, init_step=.5)
    plain, _ = stepped(Bottleneck, init_step=.5)
    plain.load_state_dict(net.state_dict())
    for each in (net, plain):
        each.train()(IMAGES).square().sum().backward()
        assert not any(any(block._states.values()) for block in each.blocks)
    for p, q in zip(net.parameters(), plain.parameters()):
        assert torch.equal(p.grad, q.grad)


@pytest.mark.parametrize('reentrant', [False, True])
def test_a_block_that_recomputes_itself_by_another_switch(reentrant):
    net, _ = stepped(Checkpointed, init_step=.5)
    for block in net.blocks:
        block.own_switch, block.reentrant = True, reentrant
    y = net.train()(IMAGES)
    with pytest.raises(RuntimeError, match='checkpointed as a whole'):
        y.sum().backward()


def test_threads_share_a_network():
    net, _ = stepped(Bottleneck, 'ConstantStep', value=.5)
    images = IMAGES, 2 * IMAGES
    want = [*map(net.eval(), images)]
    both = Barrier(2, timeout=60)  # are inside the block
    for block in net.blocks:
        block.conv1.register_forward_hook(lambda *_: print(both.wait()))
    with ThreadPoolExecutor(2) as pool:
        assert all(map(torch.equal, pool.map(net, images), want))


class Twice(Bottleneck):
    """Takes its norm as often as it is told to."""
    times = 1

    def forward(self, x):
        out = super().forward(x) if self.times else x
        return self.bn2(out) if self.times > 1 else out


def test_f_that_comes_twice_is_an_error_and_none_is_zero():
    net, stock = stepped(Twice)
    net.blocks[0].times = stock.blocks[0].times = 0
    assert torch.equal(net(IMAGES), stock(IMAGES))
    net.blocks[0].times = 2
    with pytest.raises(RuntimeError, match='bn2 once in a forward, got 2'):
        net(IMAGES)


class Frozen(Net):
    """Gives no gradients."""
    forward = torch.no_grad()(Net.forward)


def with_own(key, value):
    """A network whose last block has an attribute of that name."""
    net = Net(Bottleneck)
    setattr(net.blocks[1], key, value)
    return net


@pytest.mark.parametrize('net, step, match', [
    (Net(Layer), dict(type='CBAMAttention', reduction=2),
     'no height and width'),
    (nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()), 'SEAttention',
     'got none that takes a step: of 1 Sequential, its output '
     'has another shape'),
    (nn.Linear(5, 3), 'SEAttention', 'a model that takes images or the'),
    (stepped(Layer)[0], 'SEAttention', 'add them once'),
    (Net(InPlace), 'SEAttention', 'InPlace, it changes its input in place'),
    (Net(Walking), 'SEAttention', 'its forward runs all that it holds'),
    (Net(Merged), 'SEAttention', 'conv1 is called 0 times in training'),
    (Net(Multiplied), 'SEAttention', 'by additions alone'),
    (Frozen(Bottleneck), 'SEAttention', 'k, no gradient reaches its input'),
    (with_own('step', 1), 'StepAdaptor', "leaves 'step' to its step"),
    (with_own('forward', lambda x: x), 'StepAdaptor', "leaves 'forward' to")],
    ids=range(11))
def test_what_takes_no_step_is_refused(net, step, match):
    before = copy.deepcopy(net.state_dict())
    with pytest.raises(ValueError, match=match):
        add_steps(net, step, IMAGES)
    assert list(net.state_dict()) == list(before)


def test_a_layer_may_keep_a_tensor_that_no_copy_takes():
    net = Net(Bottleneck)
    nn.utils.weight_norm(net.blocks[0].conv1)
    assert add_steps(net, images=IMAGES) == ['blocks.0', 'blocks.1']


def test_a_row_of_blocks_behind_an_embedding_is_none():
    row = nn.Sequential(nn.Identity(), Net(Scaled).blocks[0], Sequence())
    net = nn.Sequential(nn.Conv2d(3, 4, 1), row)
    row[0].forward = lambda x: x + torch.ones(4, 1, 1)
    assert add_steps(net, images=IMAGES) == ['1.1', '1.2']


class Listed(Net):
    """Takes a list of images, as torchvision's detectors do."""

    def forward(self, images):
        return super().forward(torch.stack(images))


@pytest.mark.parametrize('kind, images', [
    (Net, dict(x=IMAGES)), (Net, (IMAGES, )), (Net, None),
    (Listed, lambda net: net([*IMAGES, IMAGES[0]]))])
def test_inputs_are_given_in_any_way(kind, images):
    net, state = kind(Scaled), torch.get_rng_state()
    report = add_steps(net, 'ConstantStep', images)
    assert torch.equal(torch.get_rng_state(), state)
    assert 'blocks.1: StepScaled, f is what drop_path takes' in str(report)


#: Arguments of small networks, by library and class.
NETWORKS = [
    ('mmdet', 'SwinTransformer', dict(
        embed_dims=12, depths=(1, 1, 2, 1), num_heads=(1, 1, 2, 2))),
    ('mmdet', 'MobileNetV2', dict(widen_factor=.25)),
    ('mmdet', 'CSPDarknet', dict(deepen_factor=.33, widen_factor=.125)),
    ('mmdet', 'PyramidVisionTransformerV2', dict(
        embed_dims=8, num_layers=[1, 1, 1, 1])),
    ('mmdet', 'Res2Net', dict(
        depth=50, scales=4, base_width=4, base_channels=8, stem_channels=8)),
    ('mmpretrain', 'ConvNeXt', dict(
        arch=dict(depths=[1, 1, 2, 1], channels=[8, 12, 16, 20]),
        layer_scale_init_value=.5)),
    ('mmpretrain', 'SEResNet', dict(
        depth=50, base_channels=16, stem_channels=8)),
    ('mmpretrain', 'HRNet', dict(extra=HRNET)),
    ('mmpretrain', 'RegNet', dict(arch='regnetx_400mf')),
    ('mmseg', 'MixVisionTransformer', dict(
        embed_dims=8, num_layers=[1, 1, 1, 1], num_heads=[1, 1, 2, 2])),
    ('mmseg', 'VisionTransformer', dict(
        img_size=64, embed_dims=16, num_layers=2, num_heads=2))]
QUICK = 'ConvNeXt', 'MobileNetV2', 'VisionTransformer'


@pytest.mark.parametrize('library, kind, kwargs', [
    pytest.param(*case, id=case[1], marks=[] if case[1] in QUICK
                 else pytest.mark.long) for case in NETWORKS])
def test_backbones_of_the_libraries(library, kind, kwargs):
    assert_bound(registry(library), kind, 64, **kwargs)


def test_the_chosen_blocks_alone_take_a_step():
    assert add_steps(Net(Bottleneck), images=IMAGES, blocks='.*1') == [
        'blocks.1']
    with pytest.raises(ValueError, match="blocks: .* got 'layer9'"):
        add_steps(Net(Bottleneck), images=IMAGES, blocks='layer9')


@pytest.mark.core
def test_a_compiled_model_is_refused():
    net = torch.compile(Net(Bottleneck), backend='eager')
    with pytest.raises(ValueError, match='add steps before torch.compile'):
        add_steps(net, images=IMAGES)


@pytest.mark.core
@pytest.mark.parametrize('images', [IMAGES, lambda net: net(IMAGES * 1)])
def test_steps_of_an_inference_mode_learn(images):
    net = Net(Bottleneck)
    with torch.inference_mode():
        assert len(add_steps(net, images=images)) == 2
    net(IMAGES).sum().backward()
    assert all(p.grad is not None for p in net.blocks[0].step.parameters())


def learning(frozen_stages, **kwargs):
    """Whether each step of a Swin learns where its stem does not."""
    net = registry('mmdet').build(dict(
        type='StepSwinTransformer', frozen_stages=frozen_stages,
        step=dict(type='StepAdaptor', **kwargs), **NETWORKS[0][2]))
    if frozen_stages < 0:
        for name, p in net.named_parameters():
            p.requires_grad_('.step.' in name)
    return net.train(), [
        all(p.requires_grad for p in step.parameters()) and step.training
        for step in net.steps()]


def test_a_step_follows_its_frozen_block_but_may_learn_alone():
    assert learning(-1)[1] == [True] * 5
    assert learning(1, init_step=1)[1] == [False, *[True] * 4]
    with pytest.raises(ValueError, match='frozen_stages=1'):
        learning(1)[0](torch.randn(1, 3, 64, 64))


def test_weights_that_a_constructor_loads_start_steps_at_one(monkeypatch):
    """TIMMBackbone has them before there are steps."""
    timm = pytest.importorskip('timm')
    make = timm.create_model
    monkeypatch.setattr(timm, 'create_model', lambda *args, **kwargs: make(
        *args, **dict(kwargs, pretrained=False)))
    cfg = dict(type='StepTIMMBackbone', model_name='resnet18')
    for pretrained, start in ((True, 1), (False, .2689)):
        net = registry('mmpretrain').build(dict(cfg, pretrained=pretrained))
        net.init_weights()
        assert net.steps()[0].init_step == pytest.approx(start, abs=1e-4)


def test_blocks_that_detectors_runs_by_another_name():
    rfp = registry('mmdet').build(dict(
        type='StepDetectoRS_ResNet', depth=50, output_img=True,
        rfp_inplanes=8,
        step=dict(type='ConstantStep', value=.5)))
    calls = []
    block = rfp.layer2[1]
    block.step.register_forward_hook(lambda *args: calls.append(args))
    block.rfp_forward(torch.randn(1, 512, 4, 4), torch.randn(1, 8, 4, 4))
    assert len(calls) == 1


def test_blocks_are_chosen_as_the_recorder_counts_them():
    cfg = dict(type='StepRes2Net', depth=50, scales=4, base_width=4,
               base_channels=16, stem_channels=16)
    build = registry('mmdet').build
    net = build(dict(cfg, step_blocks=[[1], [], [3], []]))
    assert [(block.stage, block.position) for block in find_residual_blocks(
        net) if block.step] == [(1, 1), (3, 3)]
    for chosen, match in ([0], r'got layer1\.0: its output has ano'), (
            [], 'not all empty'):
        with pytest.raises(ValueError, match=match):
            build(dict(cfg, step_blocks=[chosen, [], [], []]))
