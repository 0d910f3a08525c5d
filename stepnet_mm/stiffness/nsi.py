"""Neural Stiffness Index (NSI), Eq. 4 of the StepNet paper.

Index legend: N samples, C channels, H x W space.
"""
import math

import torch
from torch import Tensor

#: Norms whose squares are far from both ends of float32.
ORDINARY = (2.**-40, 2.**60)
#: Values that are widened at once; 128 MiB in double precision.
CHUNK = 2**24
#: Torch 2.1 has no word for it, and breaks its graph instead.
is_compiling = getattr(torch.compiler, 'is_compiling', lambda: False)


def neural_stiffness_index(x_t: Tensor, x_next: Tensor, step=1.0) -> Tensor:
    r"""NSI of each sample, :math:`\|(x_{t+1}-x_t)/\Delta t\|_2 / \|x_t\|_2`.

    Eq. 4. 0/0 is 0 and x/0 is inf; an inf or NaN among the values gives inf.
    The result is never NaN.

    Args:
        x_t (Tensor): states, shape (N, ...).
        x_next (Tensor): next states, the sum before any activation, the
            shape of ``x_t``.
        step (float | Tensor): step size Δt; a tensor of shape (N,) has one
            per sample, any other must broadcast to ``x_t``.

    Returns:
        Tensor: shape (N,), no unit, float32 or wider.

    Raises:
        ValueError: if the shapes of ``x_t`` and ``x_next`` differ or have no
            sample axis.
    """
    if x_t.ndim == 0 or x_t.shape != x_next.shape:
        raise ValueError('x_t and x_next: expected two tensors of one shape '
                         f'(N, ...), got {tuple(x_t.shape)} and '
                         f'{tuple(x_next.shape)}')
    difference = widened(x_next) - widened(x_t)
    velocity = _divide(difference, _align(step, difference))
    return norm_ratio(sample_norm(velocity), sample_norm(x_t))


def sample_norm(x: Tensor) -> Tensor:
    """2-norm of each sample, accumulated in float32 or wider.

    Where squares would leave the range of the dtype, the values are first
    scaled by a power of two, which is exact, or summed in double precision.

    Args:
        x (Tensor): shape (N, ...), any floating dtype.

    Returns:
        Tensor: shape (N,).
    """
    axes = tuple(range(1, x.ndim))
    dtype = torch.promote_types(x.dtype, torch.float32)
    if not axes:
        return x.to(dtype).abs()
    norm = torch.linalg.vector_norm(x, dim=axes, dtype=dtype)
    if x.dtype == torch.float16:
        return norm  # no square leaves the range of float32
    ordinary = (norm > ORDINARY[0]) & (norm < ORDINARY[1])
    if not looks_at_values(x):
        return norm.where(ordinary, _wide_norm(x, axes).to(dtype))
    if ordinary.all():
        return norm  # nearly always, and a second pass is expensive
    return norm.where(ordinary, _scaled_norm(x, axes, dtype))


def _wide_norm(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """In double precision, in parts of the batch, as torch copies them."""
    if is_compiling():  # which copies nothing
        return torch.linalg.vector_norm(x, dim=axes, dtype=torch.float64)
    samples = max(1, CHUNK // max(1, x.shape[1:].numel()))
    return torch.cat([
        torch.linalg.vector_norm(part, dim=axes, dtype=torch.float64)
        for part in x.split(samples)])


def looks_at_values(x: Tensor) -> bool:
    """Whether a branch on values is possible, and better than a second pass.

    On a GPU it would wait for the device, and a second pass in double
    precision is cheaper; Apple's GPUs have none.
    """
    return x.device.type in ('cpu', 'mps') and not is_compiling()


def _scaled_norm(x: Tensor, axes: tuple[int, ...],
                 dtype: torch.dtype) -> Tensor:
    if x[:1].numel() == 0:
        return x.new_zeros(len(x), dtype=dtype)
    largest = torch.linalg.vector_norm(
        x, math.inf, axes, keepdim=True, dtype=dtype)
    known = torch.isfinite(largest) & (largest > 0)
    exponent = torch.frexp(largest.where(known, 1)).exponent
    scale = torch.exp2(-exponent.clamp(-120, 120).to(dtype))
    return torch.linalg.vector_norm(x * scale, dim=axes) / scale.flatten()


def norm_ratio(numerator: Tensor, denominator: Tensor) -> Tensor:
    """Ratio of norms with 0/0 = 0, x/0 = inf, and inf for inf or NaN.

    Args:
        numerator (Tensor): norms >= 0, any shape.
        denominator (Tensor): norms >= 0, the same shape.

    Returns:
        Tensor: the same shape, in [0, inf], never NaN.
    """
    ratio = _divide(numerator, denominator)
    finite = torch.isfinite(numerator) & torch.isfinite(denominator)
    return ratio.masked_fill(~finite | torch.isnan(ratio), torch.inf)


def widened(x: Tensor) -> Tensor:
    """Values in float32 or wider."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _divide(a: Tensor, b: Tensor) -> Tensor:
    return torch.where((a == 0) & (b == 0), torch.zeros_like(a), a / b)


def _align(step, like: Tensor) -> Tensor:
    step = torch.as_tensor(step, dtype=like.dtype, device=like.device)
    if step.shape == like.shape[:1]:
        step = step.reshape(-1, *[1] * (like.ndim - 1))
    return step.expand_as(like)
