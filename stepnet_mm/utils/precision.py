"""The precision in which sums over maps are taken."""
import torch


def float32_or_wider(dtype: torch.dtype) -> torch.dtype:
    """float32 for half precision, otherwise the same floating dtype."""
    return torch.promote_types(dtype, torch.float32)
