import pytest
import torch
from attentions import CHANNELS, VARIANTS, randomised, states
from torch import nn

from stepnet_mm.steps import (
    MaxPoolStepAdaptor,
    SoftmaxStepAdaptor,
    SumStepAdaptor,
    UnnormalizedStepAdaptor,
    build_step,
)

pytestmark = pytest.mark.core


def ie(step, z):
    return step.ie.weight[:, None, None] * z + step.ie.bias[:, None, None]


def convolve(step, pooled):
    weight = step.conv_weight
    return sum(weight[:, i, None, None] * p for i, p in enumerate(pooled))


def mean(x):
    return x.mean((2, 3), keepdim=True)


def test_max_pooling():
    step = randomised('MaxPoolStepAdaptor').eval()
    x, f = states()
    pooled = [s.amax((2, 3), keepdim=True) for s in (x, x + f)]
    gate = ie(step, step.norm(convolve(step, pooled))).sigmoid()
    torch.testing.assert_close(step(x, f), f * gate)


def test_sum():
    step = randomised('SumStepAdaptor').eval()
    x, f = states()
    gate = ie(step, step.norm(mean(x) + mean(x + f))).sigmoid()
    torch.testing.assert_close(step(x, f), f * gate)


def test_unnormalized():
    step = randomised('UnnormalizedStepAdaptor')
    x, f = states()
    gate = ie(step, convolve(step, [mean(x), mean(x + f)])).sigmoid()
    torch.testing.assert_close(step(x, f), f * gate)


def test_softmax():
    step = randomised('SoftmaxStepAdaptor', init_step=.4).eval()
    x, f = states()
    z = step.norm(convolve(step, [mean(x), mean(x + f)]))
    gate = ie(step, z).softmax(1) * CHANNELS * .4
    torch.testing.assert_close(step(x, f), f * gate)
    torch.testing.assert_close(
        step.step_size(x, f).mean((1, 2, 3)), torch.full((3, ), .4))


def test_softmax_is_bounded_by_the_channels_not_by_1():
    step = randomised('SoftmaxStepAdaptor').eval()
    step.ie.bias.data[0] = 100.
    delta = step.step_size(*states())
    bound = .26894142 * CHANNELS
    assert bound > 1
    torch.testing.assert_close(delta[:, 0], torch.full_like(delta[:, 0],
                                                            bound))


@pytest.mark.parametrize('name', VARIANTS)
@pytest.mark.parametrize('start', [None, .6])
def test_all_start_at_init_step(name, start):
    step = build_step(
        dict(type=name, **(dict(init_step=start) if start else {})), CHANNELS)
    x, f = states()
    delta = step.step_size(x, f)
    torch.testing.assert_close(
        delta, torch.full_like(delta, start or .26894142))


@pytest.mark.parametrize('cls, count', [
    (MaxPoolStepAdaptor, 6), (SumStepAdaptor, 4),
    (UnnormalizedStepAdaptor, 4), (SoftmaxStepAdaptor, 6)])
def test_parameter_count(cls, count):
    assert sum(p.numel() for p in cls(7).parameters()) == count * 7


@pytest.mark.parametrize('name', VARIANTS)
@pytest.mark.parametrize('inputs', ['current', 'next', 'difference'])
def test_other_inputs(name, inputs):
    """Which state a lone input is: the gate depends on it alone."""
    step = build_step(dict(type=name, inputs=inputs), CHANNELS).eval()
    nn.init.normal_(step.ie.weight)
    x, f = states()
    y, g = states()
    same = dict(current=(x, g), next=(y, x + f - y), difference=(y, f))
    gate = step.step_size(x, f)
    for key, other in same.items():
        equal = torch.allclose(gate, step.step_size(*other), atol=1e-5)
        assert equal == (key == inputs), key


def test_one_without_a_norm_takes_none():
    with pytest.raises(ValueError, match='norm_cfg'):
        build_step(
            dict(type='UnnormalizedStepAdaptor', norm_cfg=dict(type='BN')), 8)
