"""The precision in which sums over maps are taken."""
import torch


def float32_or_wider(dtype: torch.dtype) -> torch.dtype:
    """The dtype to accumulate values of a dtype in.

    Args:
        dtype (torch.dtype): any floating one.

    Returns:
        torch.dtype: float32 for half precision, otherwise ``dtype``.
    """
    return torch.promote_types(dtype, torch.float32)
