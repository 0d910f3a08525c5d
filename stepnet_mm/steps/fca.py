"""Frequency channel attention."""
import math

import torch
import torch.fx
from mmengine.registry import MODELS
from torch import Tensor

from ..utils.precision import float32_or_wider
from .base import StepSize
from .layers import Excitation
from .pooling import global_linear

#: The 16 best frequencies (row, column) of a 7 x 7 map, in the order of the
#: networks of its authors ("top16").
TOP16 = ((0, 0), (0, 1), (6, 0), (0, 5), (0, 2), (1, 0), (1, 2), (4, 0),
         (5, 0), (1, 6), (3, 0), (0, 4), (0, 6), (0, 3), (3, 5), (2, 2))


@MODELS.register_module()
class FCAAttention(StepSize):
    r"""Frequency channel attention (Qin et al., ICCV 2021, Eq. 6 to 11).

    .. math:: \Delta t = \sigma(W_2 ReLU(W_1 \cdot DCT(f)))

    Paper: <https://arxiv.org/abs/2012.11879>.
    GAP becomes 16 components of the orthonormal 2-D DCT-II, one for each
    sixteenth of the channels; the one of frequency 0 is √(HW) times the mean.
    Frequencies are given for a 7 x 7 map and scale with ``dct_size`` // 7.
    2C²/r parameters, with biases C/r + C more.

    Args:
        in_channels (int): C.
        reduction (int): r. Defaults to 16.
        dct_size (int): edge of the map that is transformed; others are
            average-pooled to it. Defaults to 7; the networks of its authors
            have 56, 28, 14, 7 by stage, the map's own size at 224 px.
        bias (bool): whether the layers have biases. Defaults to False, as
            in the networks of its authors.

    Raises:
        ValueError: if ``dct_size`` is below 7, 16 does not divide C, or r is
            not a positive divisor of C.

    Examples:
        >>> step = build_step(dict(type='FCAAttention', dct_size=14), 64)
        >>> step(torch.rand(2, 64, 7, 7)).shape
        torch.Size([2, 64, 7, 7])
    """
    needs_space = True
    pools_only = True
    basis: Tensor

    def __init__(self, in_channels: int, reduction: int = 16,
                 dct_size: int = 7, bias: bool = False):
        super().__init__()
        if dct_size < 7:
            raise ValueError(
                'dct_size: expected at least 7, the map that the frequencies '
                f'are given for, got {dct_size}; change it in backbone.step '
                'or backbone.plugins')
        if in_channels % len(TOP16):
            raise ValueError(
                f'FCAAttention: expected a multiple of {len(TOP16)} channels,'
                f' the number of frequencies, got {in_channels}; leave it out '
                'there (backbone.step, backbone.plugins)')
        self.dct_size = dct_size
        self.excitation = Excitation(in_channels, reduction, bias)
        self.register_buffer('basis', dct_basis(dct_size), persistent=False)

    def step_size(self, identity: Tensor, residual: Tensor) -> Tensor:
        """Δt of shape (N, C, 1, 1), in (0, 1)."""
        z = global_linear(residual, self.spectrum)
        return self.excitation(z).sigmoid()

    def spectrum(self, f: Tensor) -> Tensor:
        """Each channel's DCT component: (N, C, H, W) -> (N, C, 1, 1)."""
        return _spectrum(f, self.basis)


@torch.fx.wrap
def _spectrum(f: Tensor, basis: Tensor) -> Tensor:
    f = f.to(float32_or_wider(f.dtype))
    grouped = f.unflatten(1, (len(TOP16), -1)).flatten(3)
    # In half precision a large mean would leak into every component.
    with torch.autocast(f.device.type, enabled=False):
        columns = _fitted(basis.to(f.dtype), f).flatten(1)[:, :, None]
        return (grouped @ columns).flatten(1)[:, :, None, None]


def _fitted(basis: Tensor, f: Tensor) -> Tensor:
    """The basis with the pooling before it, (16, H, W).

    Both are linear. So f is read once, and no gradient goes through a
    pooling of unequal windows, which is slow on a CPU and not deterministic
    on a GPU.
    """
    rows, columns = (_windows(basis.size(1), size, f) for size in f.shape[2:])
    return rows.T @ basis @ columns


def _windows(count: int, size: int, like: Tensor) -> Tensor:
    """Means over the windows of adaptive pooling: (count, size)."""
    i = torch.arange(count, device=like.device)[:, None]
    first, end = i * size // count, ((i + 1) * size + count - 1) // count
    place = torch.arange(size, device=like.device)
    inside = (place >= first) & (place < end)
    return inside.to(like.dtype) / (end - first)


def dct_basis(size: int) -> Tensor:
    """The orthonormal 2-D DCT-II functions of ``TOP16``: (16, size, size)."""
    waves = torch.stack([_cosine(k * (size // 7), size) for k in range(7)])
    rows, columns = map(list, zip(*TOP16))
    return (waves[rows, :, None] * waves[columns, None, :]).float()


def _cosine(frequency: int, size: int) -> Tensor:
    """One function of the orthonormal DCT-II: (size, ), float64."""
    x = torch.arange(size, dtype=torch.float64)
    wave = torch.cos(math.pi * frequency * (x + .5) / size)
    return wave * math.sqrt((2 if frequency else 1) / size)
