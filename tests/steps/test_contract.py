"""What every step-size module must do, whatever its formula."""
import copy
import pickle

import pytest
import torch
from attentions import ALL, CHANNELS, call, cfg_of, randomised, states

from stepnet_mm.steps import build_step

#: Whose Δt is half under autocast: docs/performance.md.
HALF = 'SEAttention', 'ECAAttention', 'FCAAttention', 'TimmAttention'
every = pytest.mark.parametrize('name', ALL)


@every
def test_any_spatial_size_one_image_and_a_constant_map(name):
    step = randomised(name).train()
    for shape in ((2, 1, 5), (1, 1, 1), (1, 4, 4), (2, 9, 16), None):
        x, f = states(*shape) if shape else torch.zeros(2, 2, CHANNELS, 3, 3)
        f.requires_grad_()
        out = call(step, x, f)
        assert out.shape == f.shape
        out.sum().backward()
        assert out.isfinite().all() and f.grad.isfinite().all()
        assert all(p.grad.isfinite().all() for p in step.parameters())


@pytest.mark.core
@every
def test_bfloat16(name):
    step = randomised(name).eval()
    for parameter in step.parameters():
        parameter.data *= .3  # away from a saturated sigmoid
    x, f = states(4, 6, 6)
    exact, seen = call(step, x, f), []
    step.delta.register_forward_hook(
        lambda module, args, output: seen.append(output.dtype))
    with torch.autocast('cpu', torch.bfloat16):
        low = call(step, x.bfloat16(), f.bfloat16())
    assert low.dtype == torch.bfloat16
    assert seen == [torch.bfloat16 if name in HALF else torch.float32]
    torch.testing.assert_close(low.float(), exact, atol=.06, rtol=.06)
    out = call(step.bfloat16().train(), x.bfloat16(), f.bfloat16())
    assert out.dtype == torch.bfloat16 and out.isfinite().all()


@every
def test_the_step_size_scales_the_residual(name):
    step, seen = randomised(name).eval(), []
    x, f = states()
    with step.delta.register_forward_hook(
            lambda module, args, output: seen.append(output)):
        out = call(step, x, f)
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
