import pytest
import torch
from attentions import CHANNELS, VARIANTS, randomised, states
from torch import nn

from stepnet_mm.steps import StepAdaptor, build_step
from stepnet_mm.steps.adaptor import INPUTS


def gate_of(step, x, f):
    """Fig. 4b with its modules: pooling, group convolution, IEBN, gate."""
    kind, c = type(step).__name__, step.channels
    pool = nn.AdaptiveMaxPool2d(1) if kind.startswith('Max') else (
        nn.AdaptiveAvgPool2d(1))
    pooled = [pool(s) for s in dict(
        both=[x, x + f], current=[x], next=[x + f], difference=[f],
    )[step.inputs]]
    conv = nn.Conv2d(c * len(pooled), c, 1, groups=c, bias=False).to(x.dtype)
    conv.weight.data = step.conv_weight.data[:, :, None, None]
    z = sum(pooled) if kind.startswith('Sum') else conv(
        torch.stack(pooled, 2).flatten(1, 2))
    z = z if kind.startswith('Unnormalized') else step.norm(z)
    logits = step.ie.weight[:, None, None] * z + step.ie.bias[:, None, None]
    return step.max_step * (
        logits.softmax(1) if kind.startswith('Softmax') else logits.sigmoid())


@pytest.mark.parametrize('name, kwargs', [
    *(('StepAdaptor', dict(inputs=inputs)) for inputs in INPUTS),
    *((name, dict(init_step=.4)) for name in VARIANTS),
    # The pooling that is not StepAdaptor's.
    *(('MaxPoolStepAdaptor', dict(inputs=inputs)) for inputs in INPUTS[1:])])
def test_equals_the_literal_figure(name, kwargs):
    step = randomised(name, **kwargs).double().eval()
    both = torch.stack([*states(dtype=torch.float64)]).requires_grad_()
    x, f = both
    out, expected = step(x, f), f * gate_of(step, x, f)
    torch.testing.assert_close(out, expected, atol=1e-12, rtol=1e-12)
    cotangent = torch.randn_like(out)
    torch.testing.assert_close(
        *(torch.autograd.grad(y, both, cotangent)[0]
          for y in (out, expected)), atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize('name', ['StepAdaptor', *VARIANTS])
def test_starts_at_init_step_for_every_input(name):
    for start in (None, .01, .6):
        step = build_step(dict(type=name, init_step=start), CHANNELS)
        delta = step.step_size(*states())
        torch.testing.assert_close(
            delta, torch.full_like(delta, start or .26894142))


@pytest.mark.parametrize('name', ['StepAdaptor', *VARIANTS])
def test_a_pretrained_block_starts_it_at_one(name):
    step = build_step(name, CHANNELS)
    nn.init.normal_(step.ie.weight)
    step.start_pretrained()
    x, f = states()
    assert torch.equal(step(x, f), f)
    step.init_weights()
    assert torch.equal(step(x, f), f)


def test_a_start_of_one_is_exactly_one_learns_and_is_kept():
    step, fresh = StepAdaptor(5, init_step=1), StepAdaptor(5)
    fresh.load_state_dict(step.state_dict())
    x, f = torch.randn(2, 3, 5, 4, 4)
    assert torch.equal(step(x, f), f) and torch.equal(fresh(x, f), f)
    half = f.bfloat16()
    assert torch.equal(step(x.bfloat16(), half), half)
    step(x, f).sum().backward()
    assert step.ie.weight.grad.abs().min() > 0
    assert step.ie.bias.grad.abs().min() > 0


@pytest.mark.parametrize('key, value', [
    ('inputs', 'previous'), ('init_step', 0), ('init_step', 1.5),
    ('norm_cfg', dict(type='Foo')), ('norm_cfg', dict(num_groups=2)),
    ('norm_cfg', dict(type='GN'))])
def test_wrong_arguments(key, value):
    with pytest.raises(ValueError, match=rf'backbone\.step\.{key}: '):
        StepAdaptor(5, **{key: value})
