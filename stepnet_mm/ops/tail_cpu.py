"""The kernels of the fused tail for contiguous maps on CPUs.

Torch's BatchNorm over N·C channels of one image is, without statistics of its
own, scale · z + shift a sample and channel; and the parameter half of its
backward is Σ g and Σ g·z. Both are one vectorised pass, where elementwise
operators take two or three. Rejected: a loop over tiles that fit in the
caches (its calls cost more than it saved), and torch._add_relu (one pass
less, but a NaN becomes 0).

Signatures and results are those of :mod:`tail_reference`; ``spread`` writes
over ``masked``.
"""
import torch
from torch import Tensor

from .tail_reference import wide

#: Σz² is off by about eps · mean², which must stay small against the
#: variance of the batch: beyond this ratio the variance takes a second pass.
RATIO = 64


def moments(z: Tensor, variance: bool) -> tuple:
    dtype = wide(z.dtype)
    mean = z.mean((2, 3), keepdim=True, dtype=dtype)
    if not variance:
        return mean, None
    square = mean.square()
    var = _mean_square(z, dtype).sub_(square).clamp_min_(0)
    if (square > RATIO * var.mean(0)).any():
        var = _mean_square(z.to(dtype) - mean, dtype)
    return mean, var


def _mean_square(z: Tensor, dtype: torch.dtype) -> Tensor:
    norm = torch.linalg.vector_norm(z, dim=(2, 3), keepdim=True, dtype=dtype)
    return norm.square_().div_(z[0, 0].numel())


def finish(z: Tensor, x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    return _affine(z, scale, shift).add_(x).relu_()


def mask_and_sum(grad: Tensor, y: Tensor, z: Tensor) -> tuple:
    masked = torch.ops.aten.threshold_backward(grad, y, 0).contiguous()
    zero, one = _constants(z)
    _, moment, total = torch.ops.aten.native_batch_norm_backward(
        _rows(masked), _rows(z), one, zero, one, None, None, False, 0.,
        [False, True, True])
    table = *z.shape[:2], 1, 1
    return masked, total.view(table), moment.view(table)


def spread(masked: Tensor, z: Tensor, a: Tensor, b, c: Tensor, d) -> tuple:
    if b is None:
        dz = _affine(masked, a, c)
    else:
        dz = _affine(z, b, c).addcmul_(masked, a.to(z.dtype))
    return dz, masked if d is None else masked.add_(d)


def _affine(z: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    zero, one = _constants(z)
    return torch.ops.aten.native_batch_norm(
        _rows(z), _row(scale, z), _row(shift, z), zero, one, False, 0.,
        0.)[0].view(z.shape)


def _rows(z: Tensor) -> Tensor:
    return z.view(1, z.shape[0] * z.shape[1], -1)


def _row(table: Tensor, z: Tensor) -> Tensor:
    return table.expand(*z.shape[:2], 1, 1).reshape(-1)


def _constants(z: Tensor) -> tuple:
    """Mean 0 and variance 1 for each row."""
    zero = torch.zeros(z.shape[0] * z.shape[1], dtype=wide(z.dtype))
    return zero, torch.ones_like(zero)
