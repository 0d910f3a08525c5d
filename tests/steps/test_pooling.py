from types import SimpleNamespace

import pytest
import torch
from torch import nn

from stepnet_mm.steps import layers
from stepnet_mm.steps.layers import apply_norm
from stepnet_mm.steps.pooling import (
    AffineMap,
    global_max,
    global_mean,
    global_std,
)


def test_global_mean_is_accumulated_in_float32_or_wider():
    x = torch.ones(2, 3, 64, 64, dtype=torch.bfloat16)
    x[..., 0, 0] = 3
    mean = global_mean(x)
    assert mean.dtype == torch.float32 and mean.shape == (2, 3, 1, 1)
    torch.testing.assert_close(mean, torch.full_like(mean, 1 + 2 / 4096))


def test_global_max_passes_its_gradient_to_one_of_equal_values():
    x = torch.ones(1, 1, 2, 2, requires_grad=True)
    global_max(x).sum().backward()
    assert x.grad.flatten().tolist() == [1, 0, 0, 0]


@pytest.fixture
def norm():
    norm = nn.BatchNorm2d(3)
    nn.init.uniform_(norm.running_mean)
    nn.init.uniform_(norm.weight)
    return norm


@pytest.mark.parametrize('make', [
    lambda norm: norm, nn.SyncBatchNorm.convert_sync_batchnorm])
def test_one_image_uses_running_statistics_and_warns_once(norm, make):
    layers._warn_alone.cache_clear()
    pooled, before = torch.rand(1, 3, 1, 1), norm.running_mean.clone()
    made = make(norm)
    with pytest.warns(UserWarning, match='one image') as caught:
        out = apply_norm(made, pooled)
        apply_norm(made, pooled)
    assert len(caught) == 1
    assert torch.equal(made.running_mean, before)
    torch.testing.assert_close(out, norm.eval()(pooled))


@pytest.mark.parametrize('shape', [(2, 3, 1, 1), (1, 3, 4, 4)])
def test_two_images_or_pixels_are_a_batch(norm, shape):
    out = apply_norm(norm, torch.rand(shape))
    assert norm.num_batches_tracked == 1
    torch.testing.assert_close(
        out.mean((0, 2, 3)), norm.bias, atol=1e-6, rtol=0)


@pytest.mark.parametrize('scale', [1e-30, 1., 1e30])
def test_a_map_that_is_never_built(scale):
    z, step_size = torch.randn(2, 3, 4, 4), torch.rand(2, 3, 1, 1)
    factor, shift = torch.randn(2, 3, 1, 1)
    f = factor * z + shift
    known = AffineMap(SimpleNamespace(map=z, moments=SimpleNamespace(
        variance=z.var((2, 3), unbiased=False, keepdim=True),
        scale=factor * scale, mean_f=f.mean((2, 3), keepdim=True) * scale)))
    for found, made in ((known.norm(), f),
                        (known.norm(step_size), f * step_size)):
        expected = made.double().flatten(1).norm(dim=1)
        torch.testing.assert_close(found.double(), expected * scale)
    torch.testing.assert_close(
        global_std(known) / scale, f.std((2, 3), keepdim=True))
