"""StepAdaptor, its variants and ConstantStep: formulas and starts."""
import pytest
import torch
from attentions import CHANNELS, VARIANTS, randomised, states
from torch import nn

from stepnet_mm.steps import ConstantStep, StepAdaptor, build_step
from stepnet_mm.steps.adaptor import INPUTS

PUBLISHED = .2689414213699951
ADAPTORS = ['StepAdaptor', *VARIANTS]


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


@pytest.mark.parametrize('cfg, key', [
    *((dict(type=name), 'init_step') for name in ADAPTORS),
    *((dict(type='ConstantStep', learned=learned), 'value')
      for learned in (False, True))])
def test_where_it_starts_for_every_input(cfg, key):
    """As published, at the config's number, or at 1 in a pretrained block."""
    x, f = states()
    for start in (.01, .6):
        step = build_step({**cfg, key: start}, CHANNELS)
        step.start_pretrained()
        torch.testing.assert_close(step(x, f), f * start)
    loaded = build_step(cfg, CHANNELS)
    loaded.load_state_dict({}, strict=False)
    assert not loaded.loaded
    torch.testing.assert_close(loaded(x, f), f * PUBLISHED)
    loaded.load_state_dict(step.state_dict())
    loaded.start_pretrained()
    assert loaded.loaded
    torch.testing.assert_close(loaded(x, f), f * .6)
    loaded.forget_loaded()
    loaded.init_weights()
    torch.testing.assert_close(loaded(x, f), f * PUBLISHED)
    for parameter in loaded.parameters():
        nn.init.normal_(parameter)
    loaded.start_pretrained()
    assert torch.equal(loaded(x, f), f)


def test_a_start_of_one_is_exactly_one_in_half_precision():
    x, f = states(dtype=torch.bfloat16)
    assert torch.equal(StepAdaptor(CHANNELS, init_step=1)(x, f), f)


def test_a_constant_scales_each_channel():
    step, f = ConstantStep(5, value=3.), torch.randn(3, 5, 4, 4)
    step.value[1] = 7
    assert torch.equal(step(f)[:, 1:3], f[:, 1:3] * torch.tensor(
        [7., 3.]).view(2, 1, 1))
