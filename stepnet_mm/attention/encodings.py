"""Positional encodings, relative and absolute.

The relative ones have scores that are a sum over the two axes. For a shift
δ = k - q from query to key the encoding is r_δ = r₁(δ₁) + r₂(δ₂) in R^D, so a
score c · r_δ is a row's plus a column's, and a softmax over both is the
product of one over rows and one over columns. The absolute one is a vector of
each pixel.
"""
import torch
from torch import Tensor, nn

from ..utils.precision import float32_or_wider


class QuadraticEncoding(nn.Module):
    """r_δ = (‖δ‖², δ₁, δ₂), D = 3: a centre and a width for each head.

    With c = -1/(2σ²) · (1, -2Δ₁, -2Δ₂) the score is, up to a constant,
    -‖δ - Δ‖² / (2σ²): the head looks at the shift Δ, the more sharply the
    narrower σ. (The form of https://arxiv.org/abs/1911.03584, α = 1/(2σ²).)

    Attributes:
        centers (nn.Parameter): Δ, (heads, 2) in pixels, rows first. From
            N(0, 2²) at the start.
        widths (nn.Parameter): σ, (heads, ) in pixels, at least 1e-3. 1 at the
            start.
    """
    dim = 3

    def __init__(self, num_heads: int):
        super().__init__()
        self.centers = nn.Parameter(torch.empty(num_heads, 2))
        self.widths = nn.Parameter(torch.ones(num_heads))
        nn.init.normal_(self.centers, std=2)

    def coefficients(self) -> Tensor:
        """c of each head, (heads, 3), float32 or wider."""
        widths = self.widths.to(float32_or_wider(self.widths.dtype))
        # A head of no width at all would divide by 0.
        precision = .5 / widths.square().clamp_min(1e-6)
        precision = precision[:, None]
        return torch.cat([-precision, 2 * precision * self.centers], 1)

    def forward(self, shifts: Tensor, axis: int) -> Tensor:
        """r of one axis: whole numbers of any shape (...) -> (..., 3)."""
        zero = torch.zeros_like(shifts)
        linear = (shifts, zero) if axis == 0 else (zero, shifts)
        return torch.stack([shifts.square(), *linear], -1)


class LearnedEncoding(nn.Module):
    """r_δ = (rows[δ₁], columns[δ₂]): learned vectors, one per shift and axis.

    Args:
        num_heads (int): heads.
        max_size (int): the largest side of a map, padding included, px.
        dim (int): D, an even number. Defaults to 64.

    Attributes:
        rows, columns (nn.Parameter): (2 · max_size - 1, D / 2). From N(0, 1)
            at the start.
        vectors (nn.Parameter): c of each head, (heads, D). From N(0, 1 / D)
            at the start, so that a score's variance is 1.

    Raises:
        ValueError: for an odd ``dim``.
    """

    def __init__(self, num_heads: int, max_size: int, dim: int = 64):
        super().__init__()
        if dim % 2:
            raise ValueError('encoding_dim: expected an even number, half for '
                             f'rows, got {dim}')
        self.max_size, self.dim = max_size, dim
        self.rows = nn.Parameter(torch.empty(2 * max_size - 1, dim // 2))
        self.columns = nn.Parameter(torch.empty(2 * max_size - 1, dim // 2))
        self.vectors = nn.Parameter(torch.empty(num_heads, dim))
        nn.init.normal_(self.rows)
        nn.init.normal_(self.columns)
        nn.init.normal_(self.vectors, std=self.dim**-.5)

    def coefficients(self) -> Tensor:
        """c of each head, (heads, D), float32 or wider."""
        return self.vectors.to(float32_or_wider(self.vectors.dtype))

    def forward(self, shifts: Tensor, axis: int) -> Tensor:
        """r of one axis: whole numbers of any shape (...) -> (..., D)."""
        table = (self.rows, self.columns)[axis]
        found = table[shifts + self.max_size - 1]
        zero = torch.zeros_like(found)
        return torch.cat([found, zero] if axis == 0 else [zero, found], -1)


class AbsoluteEncoding(nn.Module):
    """X -> X + P, with a learned vector for each pixel.

    Args:
        channels (int): C, of X.
        max_size (int): the largest side of a map, padding included, px. A
            smaller map has the vectors of the upper left corner.

    Attributes:
        table (nn.Parameter): P, (C, max_size, max_size). From N(0, 1) at the
            start, as large as a normalised map.
    """

    def __init__(self, channels: int, max_size: int):
        super().__init__()
        self.table = nn.Parameter(torch.empty(channels, max_size, max_size))
        nn.init.normal_(self.table)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) -> the same shape."""
        height, width = x.shape[2:]
        return x + self.table[:, :height, :width].to(x.dtype)
