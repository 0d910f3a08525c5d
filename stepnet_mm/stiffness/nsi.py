"""Neural Stiffness Index (NSI), Eq. 4 of https://arxiv.org/abs/2308.09939.

And the stiffness of ordinary differential equations that it comes from
(§2.1.2).

Index legend: N samples, C channels, H x W space.
"""
import torch
from torch import Tensor


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
    velocity = widened(x_next) - widened(x_t)
    if isinstance(step, Tensor) or step != 1:
        velocity = _divide(velocity, _align(step, velocity))
    return norm_ratio(sample_norm(velocity), sample_norm(x_t))


def stiffness_index(jacobian: Tensor) -> Tensor:
    r"""SI, :math:`\max_i |\mathrm{Re}\,\lambda_i(J)|` (§2.1.2).

    Args:
        jacobian (Tensor): shape (..., n, n), real or complex.

    Returns:
        Tensor: shape (...), in 1 / time.
    """
    return torch.linalg.eigvals(jacobian).real.abs().amax(-1)


def stiffness_aware_index(states: Tensor, times: Tensor,
                          simplified: bool = False) -> Tensor:
    r"""SAI of an observed trajectory, Eq. 3.

    .. math:: \|(u_{i+1}-u_i)/(t_{i+1}-t_i)\|_2 / \|u_i\|_2

    Args:
        states (Tensor): shape (T, ...), the states u_i.
        times (Tensor): shape (T,), strictly increasing.
        simplified (bool): the simplified form of §2.1.2, the difference
            quotient itself, without norms.

    Returns:
        Tensor: shape (T - 1,) in 1 / time; (T - 1, ...) if ``simplified``.
        In float32 or wider; 0/0 is 0, x/0 is inf.

    Raises:
        ValueError: if times do not increase.
    """
    times = torch.as_tensor(times, dtype=torch.float64, device=states.device)
    states = widened(states)
    gaps = times.diff()
    if not (gaps > 0).all():
        raise ValueError('times: expected strictly increasing values, got a '
                         f'smallest gap of {gaps.min().item()}')
    gaps = gaps.to(states.dtype).reshape(-1, *[1] * (states.ndim - 1))
    quotient = states.diff(dim=0) / gaps
    if simplified:
        return quotient
    return norm_ratio(sample_norm(quotient), sample_norm(states[:-1]))


def sample_norm(x: Tensor) -> Tensor:
    """2-norm of each sample, accumulated in float32 or wider.

    Args:
        x (Tensor): shape (N, ...), any floating dtype.

    Returns:
        Tensor: shape (N,).
    """
    axes = tuple(range(1, x.ndim))
    dtype = torch.promote_types(x.dtype, torch.float32)
    if not axes:
        return x.to(dtype).abs()
    return torch.linalg.vector_norm(x, dim=axes, dtype=dtype)


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
