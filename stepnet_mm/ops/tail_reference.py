"""The formulas of the fused tail's kernels in plain differentiable torch.

A map is (N, C, H, W), a table (N, C, 1, 1) in float32 or wider. The tests
compare the other kernels with these; second derivatives are taken of these,
and ``torch.compile`` makes its own kernels from them.
"""
import torch
from torch import Tensor

from ..utils.precision import float32_or_wider


def moments(z: Tensor, variance: bool) -> tuple:
    """Mean and (or None) biased variance over space, two tables."""
    values = z.to(float32_or_wider(z.dtype))
    if not variance:
        return values.mean((2, 3), keepdim=True), None
    # About a value from the middle, which keeps Σz² from cancelling.
    h, w = z.shape[2] // 2, z.shape[3] // 2
    about = values[:, :, h:h + 1, w:w + 1].detach()
    values = values - about
    mean = values.mean((2, 3), keepdim=True)
    var = values.square().mean((2, 3), keepdim=True) - mean.square()
    return about + mean, var.clamp_min(0)


def scale_add_relu(z: Tensor, x: Tensor, scale: Tensor,
                   shift: Tensor) -> Tensor:
    """The map relu(x + scale · z + shift)."""
    return (z * scale + shift + x).relu().to(z.dtype)


def mask_and_sum(grad: Tensor, y: Tensor, z: Tensor, mean: Tensor) -> tuple:
    """The ReLU's gradient g, the tables Σ g and Σ g·(z - mean) over space."""
    masked = torch.where(y <= 0, 0, grad)
    total = masked.to(float32_or_wider(z.dtype))
    return (masked, total.sum((2, 3), keepdim=True),
            (total * (z - mean)).sum((2, 3), keepdim=True))


def input_gradients(masked: Tensor, z: Tensor, a: Tensor, b: Tensor | None,
                    c: Tensor, d: Tensor | None) -> tuple:
    """The maps dz = a · g + b · z + c and dx = g + d.

    g is ``masked`` and a the scale; None for b or d stands for 0.
    """
    dz = masked * a + c
    dz = dz if b is None else dz + b * z
    dx = masked if d is None else masked + d
    return dz.to(z.dtype), dx.to(z.dtype)
