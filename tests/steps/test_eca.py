import math

import pytest
import torch

from stepnet_mm.steps import ECAAttention


@pytest.mark.parametrize('kernel_size', [1, 5])
def test_equals_timm(kernel_size):
    layers = pytest.importorskip('timm.layers')
    theirs = layers.EcaModule(kernel_size=kernel_size)
    ours = ECAAttention(16, kernel_size=kernel_size)
    ours.conv.weight.data = theirs.conv.weight.data
    f = torch.randn(2, 16, 5, 7)
    torch.testing.assert_close(ours(f), theirs(f))


def test_adaptive_kernel():
    # Eq. 12: |log2(C)/2 + 1/2|, the nearest odd number upwards.
    for channels, size in ((16, 3), (64, 3), (100, 3), (256, 5), (2048, 7)):
        conv = ECAAttention(channels, kernel_size=None).conv
        assert conv.kernel_size == (size, )


def test_init_gate():
    step, shifted = ECAAttention(16), ECAAttention(16, init_gate=.25)
    shifted.load_state_dict(step.state_dict())
    f = torch.randn(2, 16, 5, 7)
    torch.testing.assert_close(
        shifted.step_size(f, f).logit(),
        step.step_size(f, f).logit() - math.log(3))
    zeros = torch.zeros(1, 16, 2, 2)
    torch.testing.assert_close(
        shifted.step_size(zeros, zeros), torch.full((1, 16, 1, 1), .25))


def test_weights_show_the_kernel():
    for kernel_size in (1, 3, 7, None):
        step = ECAAttention(64, kernel_size=kernel_size)
        assert step.arguments_of(step.state_dict()) == dict(
            kernel_size=kernel_size or 3)


@pytest.mark.parametrize('weights', [
    {}, {'conv.weight': 1}, {'conv.weight': torch.ones(1, 1, 3, 3)},
    {'conv.weight': torch.ones(1, 1, 3), 'ie.bias': torch.ones(64)}])
def test_other_weights_show_none(weights):
    assert ECAAttention(64).arguments_of(weights) == {}


@pytest.mark.parametrize('kernel_size', [0, 2, 3., 'adaptive'])
def test_wrong_kernel(kernel_size):
    with pytest.raises(ValueError, match='kernel_size: '):
        ECAAttention(64, kernel_size=kernel_size)
