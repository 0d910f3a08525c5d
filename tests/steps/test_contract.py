"""What every step-size module must do, whatever its formula."""
import copy
import pickle

import pytest
import torch
from attentions import (
    ALL,
    ATTENTIONS,
    CHANNELS,
    call,
    cfg_of,
    randomised,
    states,
)

from stepnet_mm.steps import StepSize, build_step

every = pytest.mark.parametrize('name', ALL)


def tame(name):
    """Away from a saturated sigmoid."""
    step = randomised(name)
    for parameter in step.parameters():
        parameter.data *= .3
    return step


@every
def test_gradients_in_float64(name):
    step = tame(name).double()
    for training in (True, False):
        step.train(training)
        x, f = states(3, 3, 2, torch.float64)
        assert torch.autograd.gradcheck(
            lambda x, f: call(step, x, f),
            (x.requires_grad_(), f.requires_grad_()), fast_mode=True)


@every
def test_any_spatial_size_one_image_and_a_constant_map(name):
    step = randomised(name).train()
    for shape in ((2, 1, 5), (1, 1, 1), (1, 4, 4), (2, 9, 16), None):
        x, f = states(*shape) if shape else torch.zeros(
            2, 2, CHANNELS, 3, 3)
        f.requires_grad_()
        out = call(step, x, f)
        assert out.shape == f.shape
        out.sum().backward()
        assert out.isfinite().all() and f.grad.isfinite().all()
        assert all(p.grad.isfinite().all() for p in step.parameters())


@pytest.mark.core
@every
def test_bfloat16(name):
    step = tame(name).eval()
    x, f = states(4, 6, 6)
    exact = call(step, x, f)
    with torch.autocast('cpu', torch.bfloat16):
        low = call(step, x.bfloat16(), f.bfloat16())
    assert low.dtype == torch.bfloat16
    torch.testing.assert_close(low.float(), exact, atol=.06, rtol=.06)
    out = call(step.bfloat16().train(), x.bfloat16(), f.bfloat16())
    assert out.dtype == torch.bfloat16 and out.isfinite().all()


@every
def test_the_step_size_scales_the_residual(name):
    step, seen = randomised(name).eval(), []
    handle = step.delta.register_forward_hook(
        lambda m, args, out: seen.append(out))
    x, f = states()
    out = call(step, x, f)
    handle.remove()
    assert seen[0].dim() == 4
    # Nothing keeps a learned constant positive, as in LayerScale.
    assert name == 'ConstantStep' or (seen[0] >= 0).all()
    torch.testing.assert_close(out, f * seen[0])
    last = [s.contiguous(memory_format=torch.channels_last) for s in (x, f)]
    torch.testing.assert_close(call(step, *last), out)
    for twin in (copy.deepcopy(step), pickle.loads(pickle.dumps(step))):
        assert torch.equal(call(twin, x, f), call(step, x, f))


@every
def test_init_weights_sets_the_starts_again(name):
    step = build_step(cfg_of(name), CHANNELS)
    fresh = copy.deepcopy(step.state_dict())
    for parameter in step.parameters():
        torch.nn.init.constant_(parameter, 7)
    step.load_state_dict(step.state_dict())
    assert step.loaded
    step.init_weights()
    assert not step.loaded
    for key, value in step.state_dict().items():
        start = fresh[key]
        if start.unique().numel() == 1:  # not drawn
            assert torch.equal(value, start), key
        assert not (value == 7).any(), key


@pytest.mark.parametrize('name', ['StepAdaptor', 'FCAAttention'])
def test_as_step_of_a_backbone(name):
    models = pytest.importorskip('mmpretrain.registry').MODELS
    net = models.build(dict(
        type='StepResNet', depth=18, step=cfg_of(name), base_channels=16,
        stem_channels=16))
    net.init_weights()
    net.train()
    net(torch.randn(2, 3, 32, 32))[0].square().mean().backward()
    assert len(net.steps()) == (5 if name == 'StepAdaptor' else 8)
    assert all(p.grad.isfinite().all() for step in net.steps()
               for p in step.parameters())


@pytest.mark.parametrize('name', ATTENTIONS)
def test_as_a_plugin_of_a_stock_backbone(name):
    models = pytest.importorskip('mmdet.registry').MODELS
    plugin = dict(cfg=cfg_of(name), position='after_conv3')
    net = models.build(dict(
        type='ResNet', depth=50, num_stages=1, strides=(1, ),
        dilations=(1, ), out_indices=(0, ), plugins=[plugin],
        base_channels=16, stem_channels=16))
    net.init_weights()
    net.train()
    net(torch.randn(2, 3, 16, 16))[0].square().mean().backward()
    steps = [m for m in net.modules() if isinstance(m, StepSize)]
    assert len(steps) == 3
    assert all(p.grad is not None for s in steps for p in s.parameters())


@pytest.mark.core
@pytest.mark.since_torch('2.5', 'one graph')
@pytest.mark.parametrize('name', ['StepAdaptor', *ATTENTIONS])
def test_traces_without_a_graph_break(name):
    torch._dynamo.reset()
    step = randomised(name).train()
    compiled = torch.compile(step, fullgraph=True, backend='eager')
    x, f = states()
    given = (x, f) if step.needs_identity else (f, )
    torch.testing.assert_close(compiled(*given), step(*given))
