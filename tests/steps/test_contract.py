"""What every step-size module must do, whatever its formula."""
import copy
import pickle

import pytest
import torch
from attentions import (
    ALL,
    ATTENTIONS,
    CHANNELS,
    VARIANTS,
    call,
    cfg_of,
    randomised,
    states,
)

from stepnet_mm.steps import StepSize, build_step
from stepnet_mm.steps.base import default_blocks

pytestmark = pytest.mark.core
EVERY = (*ALL, *VARIANTS)


@pytest.mark.parametrize('name', EVERY)
@pytest.mark.parametrize('training', [True, False])
def test_gradients_in_float64(name, training):
    step = randomised(name).double().train(training)
    x, f = states(3, 3, 2, torch.float64)
    for parameter in step.parameters():  # away from a saturated sigmoid
        parameter.data *= .3
    assert torch.autograd.gradcheck(
        lambda x, f: call(step, x, f),
        (x.requires_grad_(), f.requires_grad_()), fast_mode=True)


@pytest.mark.parametrize('name', EVERY)
@pytest.mark.parametrize('shape', [(2, 1, 1), (2, 1, 5), (1, 1, 1), (1, 4, 4),
                                   (2, 9, 16)])
def test_any_spatial_size_and_one_image(name, shape):
    step = randomised(name).train()
    x, f = states(*shape)
    f.requires_grad_()
    out = call(step, x, f)
    assert out.shape == f.shape
    out.sum().backward()
    assert out.isfinite().all() and f.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in step.parameters())


@pytest.mark.parametrize('name', EVERY)
def test_a_constant_map_has_finite_gradients(name):
    step = randomised(name).train()
    x, f = torch.zeros(2, 2, CHANNELS, 3, 3)
    f.requires_grad_()
    call(step, x, f).sum().backward()
    assert f.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in step.parameters())


@pytest.mark.parametrize('name', EVERY)
def test_autocast_to_bfloat16(name):
    step = randomised(name).eval()
    x, f = states(4, 6, 6)
    for parameter in step.parameters():
        parameter.data *= .3
    exact = call(step, x, f)
    with torch.autocast('cpu', torch.bfloat16):
        low = call(step, x.bfloat16(), f.bfloat16())
    assert low.dtype == torch.bfloat16
    torch.testing.assert_close(low.float(), exact, atol=.06, rtol=.06)


@pytest.mark.parametrize('name', EVERY)
def test_a_model_in_bfloat16(name):
    step = randomised(name).bfloat16().train()
    x, f = states(4, 6, 6, torch.bfloat16)
    out = call(step, x, f)
    assert out.dtype == torch.bfloat16 and out.isfinite().all()


@pytest.mark.parametrize('name', EVERY)
def test_channels_last_gives_the_same(name):
    step = randomised(name).eval()
    x, f = states(2, 6, 5)
    last = [s.contiguous(memory_format=torch.channels_last) for s in (x, f)]
    torch.testing.assert_close(call(step, *last), call(step, x, f))


@pytest.mark.parametrize('name', EVERY)
def test_the_step_size_scales_the_residual(name):
    step, seen = randomised(name).eval(), []
    step.delta.register_forward_hook(lambda m, a, out: seen.append(out))
    x, f = states()
    out = call(step, x, f)
    assert seen[0].dim() == 4
    # Nothing keeps a learned constant positive, as in LayerScale.
    assert name == 'ConstantStep' or (seen[0] >= 0).all()
    torch.testing.assert_close(out, f * seen[0])


@pytest.mark.parametrize('name', EVERY)
def test_init_weights_sets_the_starts_again(name):
    step = build_step(cfg_of(name), CHANNELS)
    fresh = copy.deepcopy(step.state_dict())
    for parameter in step.parameters():
        torch.nn.init.constant_(parameter, 7)
    step.init_weights()
    for key, value in step.state_dict().items():
        start = fresh[key]
        if start.unique().numel() == 1:  # not drawn
            assert torch.equal(value, start), key
        assert not (value == 7).any(), key


@pytest.mark.parametrize('name', EVERY)
def test_copies_and_pickles(name):
    step = randomised(name).eval()
    x, f = states()
    for twin in (copy.deepcopy(step), pickle.loads(pickle.dumps(step))):
        assert torch.equal(call(twin, x, f), call(step, x, f))


def blocks_of(net):
    return [block for name in net.res_layers for block in getattr(net, name)]


@pytest.mark.parametrize('depth', [18, 50])
@pytest.mark.parametrize('name', EVERY)
def test_as_step_of_a_backbone(models, name, depth):
    net = models.build(
        dict(type='StepResNet', depth=depth, step=cfg_of(name), num_stages=2,
             strides=(1, 2), dilations=(1, 1), out_indices=(0, 1)))
    net.init_weights()
    net.train()
    outs = net(torch.randn(2, 3, 48, 40))
    sum(out.square().mean() for out in outs).backward()
    assert all(out.isfinite().all() for out in outs)
    assert net.steps() and all(isinstance(s, StepSize) for s in net.steps())
    everywhere = default_blocks(name) == 'all'
    assert len(net.steps()) == len(blocks_of(net)) - (0 if everywhere else
                                                      2 if depth == 50 else 1)


POSITIONS = ('after_conv1', 'after_conv2', 'after_conv3')


@pytest.mark.parametrize('position', POSITIONS)
@pytest.mark.parametrize('name', ATTENTIONS)
def test_as_a_plugin_of_a_stock_backbone_by_stage(name, position):
    plugin = dict(
        cfg=cfg_of(name), stages=(False, True), position=position)
    registry = pytest.importorskip('mmdet.registry')
    net = registry.MODELS.build(
        dict(type='ResNet', depth=50, num_stages=2, strides=(1, 2),
             dilations=(1, 1), out_indices=(0, 1), plugins=[plugin]))
    fresh = [copy.deepcopy(m) for m in net.modules()
             if isinstance(m, StepSize)]
    net.init_weights()
    net.train()
    outs = net(torch.randn(2, 3, 32, 32))
    sum(out.square().mean() for out in outs).backward()
    steps = [m for m in net.layer2.modules() if isinstance(m, StepSize)]
    assert len(steps) == 4 and len(fresh) == 4
    assert not any(isinstance(m, StepSize) for m in net.layer1.modules())
    for step, start in zip(steps, fresh):
        for key, value in start.state_dict().items():
            drawn = value.is_floating_point() and value.unique().numel() > 1
            assert drawn or 'running' in key or 'batches' in key or (
                torch.equal(step.state_dict()[key], value)), key
        assert all(p.grad is not None for p in step.parameters())


@pytest.mark.since_torch('2.5', 'one graph')
@pytest.mark.parametrize('name', EVERY)
def test_traces_without_a_graph_break(name):
    torch._dynamo.reset()
    step = randomised(name).train()
    compiled = torch.compile(step, fullgraph=True, backend='eager')
    x, f = states()
    given = (x, f) if step.needs_identity else (f, )
    torch.testing.assert_close(compiled(*given), step(*given))
