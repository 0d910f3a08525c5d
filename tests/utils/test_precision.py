import pytest
import torch

from stepnet_mm.utils.precision import float32_or_wider


@pytest.mark.parametrize('given, wanted', [
    (torch.float16, torch.float32), (torch.bfloat16, torch.float32),
    (torch.float32, torch.float32), (torch.float64, torch.float64)])
def test_half_precision_becomes_single(given, wanted):
    assert float32_or_wider(given) == wanted
