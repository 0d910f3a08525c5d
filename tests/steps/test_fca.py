import numpy as np
import pytest
import torch

from stepnet_mm.steps import FCAAttention
from stepnet_mm.steps.fca import TOP16


@pytest.mark.parametrize('size', [7, 16])
def test_the_spectrum_equals_scipys_dct(size):
    fft = pytest.importorskip('scipy.fft')
    step = FCAAttention(32, dct_size=size)
    f = torch.randn(2, 32, size, size)
    whole = fft.dctn(f.double().numpy(), axes=(2, 3), norm='ortho')
    scale = size // 7
    expected = np.stack([
        whole[:, c, TOP16[c // 2][0] * scale, TOP16[c // 2][1] * scale]
        for c in range(32)
    ], 1)
    torch.testing.assert_close(
        step.spectrum(f)[:, :, 0, 0].double(),
        torch.from_numpy(expected), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize('size', [(14, 21), (4, 5)])
def test_another_size_is_pooled(size):
    step = FCAAttention(32, dct_size=7)
    f = torch.randn(2, 32, *size, requires_grad=True)
    pooled = torch.nn.functional.adaptive_avg_pool2d(f, 7)
    spectrum, expected = step.spectrum(f), step.spectrum(pooled)
    torch.testing.assert_close(spectrum, expected)
    cotangent = torch.randn_like(spectrum)
    torch.testing.assert_close(
        *(torch.autograd.grad(z, f, cotangent)[0]
          for z in (spectrum, expected)))


def test_the_spectrum_is_exact_under_autocast():
    step = FCAAttention(32, dct_size=14)
    f = (torch.randn(2, 32, 14, 14) + 3).bfloat16()
    with torch.autocast('cpu', torch.bfloat16):
        low = step.spectrum(f)
    torch.testing.assert_close(
        low, step.spectrum(f.float()), atol=1e-4, rtol=1e-4)
