"""Stiffness of ordinary differential equations (§2.1.2 of the paper)."""
import torch
from torch import Tensor

from .nsi import norm_ratio, sample_norm, widened


def stiffness_index(jacobian: Tensor) -> Tensor:
    r"""SI, :math:`\max_i |\mathrm{Re}\,\lambda_i(J)|` (§2.1.2).

    Args:
        jacobian (Tensor): shape (..., n, n), real or complex.

    Returns:
        Tensor: shape (...), in 1 / time.
    """
    return torch.linalg.eigvals(jacobian).real.abs().amax(-1)


def stiffness_aware_index(states: Tensor,
                          times: Tensor,
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
        ValueError: if lengths differ, or times do not increase.
    """
    times = torch.as_tensor(times, dtype=torch.float64, device=states.device)
    states = widened(states)
    if times.shape != states.shape[:1]:
        raise ValueError('states, times: expected (T, ...) and (T,), got '
                         f'{tuple(states.shape)} and {tuple(times.shape)}')
    gaps = times.diff()
    if not (gaps > 0).all():
        raise ValueError('times: expected strictly increasing values, got a '
                         f'smallest gap of {gaps.min().item()}')
    gaps = gaps.to(states.dtype).reshape(-1, *[1] * (states.ndim - 1))
    quotient = states.diff(dim=0) / gaps
    if simplified:
        return quotient
    return norm_ratio(sample_norm(quotient), sample_norm(states[:-1]))
