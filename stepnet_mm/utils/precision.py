"""The precision in which sums over maps are taken."""
import torch

HALVES = torch.float16, torch.bfloat16


def float32_or_wider(dtype: torch.dtype) -> torch.dtype:
    """float32 for half precision, otherwise the same floating dtype."""
    return torch.float32 if dtype in HALVES else dtype
