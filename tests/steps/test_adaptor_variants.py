import pytest
import torch
from attentions import CHANNELS, VARIANTS, randomised, states
from torch import nn

from stepnet_mm.steps import build_step


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
def test_all_start_at_init_step(name):
    for start, chosen in ((.26894142, {}), (.6, dict(init_step=.6))):
        step = build_step(dict(type=name, **chosen), CHANNELS)
        delta = step.step_size(*states())
        torch.testing.assert_close(delta, torch.full_like(delta, start))


@pytest.mark.parametrize('name', VARIANTS)
def test_other_inputs(name):
    """Which state a lone input is: the gate depends on it alone."""
    (x, f), (y, g) = states(), states()
    same = dict(current=(x, g), next=(y, x + f - y), difference=(y, f))
    for inputs in same:
        step = build_step(dict(type=name, inputs=inputs), CHANNELS).eval()
        nn.init.normal_(step.ie.weight)
        gate = step.step_size(x, f)
        for key, other in same.items():
            equal = torch.allclose(gate, step.step_size(*other), atol=1e-5)
            assert equal == (key == inputs), key


def test_one_without_a_norm_takes_none():
    with pytest.raises(ValueError, match='norm_cfg'):
        build_step(
            dict(type='UnnormalizedStepAdaptor', norm_cfg=dict(type='BN')), 8)
