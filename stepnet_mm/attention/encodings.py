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
    narrower σ. (The paper's form, with α = 1/(2σ²).)

    Args:
        num_heads (int): heads.

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
        self.widths = nn.Parameter(torch.empty(num_heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the centres anew, and set the widths to 1."""
        nn.init.normal_(self.centers, std=2)
        nn.init.ones_(self.widths)

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
        ValueError: without a ``max_size``, or for an odd ``dim``.
    """

    def __init__(self, num_heads: int, max_size: int, dim: int = 64):
        super().__init__()
        check_max_size(max_size, "encoding='learned'", 'shift')
        if type(dim) is not int or dim < 2 or dim % 2:
            raise ValueError('encoding_dim: expected an even positive number, '
                             f'half for rows, got {dim!r}')
        self.max_size, self.dim = max_size, dim
        self.rows = nn.Parameter(torch.empty(2 * max_size - 1, dim // 2))
        self.columns = nn.Parameter(torch.empty(2 * max_size - 1, dim // 2))
        self.vectors = nn.Parameter(torch.empty(num_heads, dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all vectors anew."""
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

    Raises:
        ValueError: without a ``max_size``.
    """

    def __init__(self, channels: int, max_size):
        super().__init__()
        check_max_size(max_size, "encoding='absolute'", 'pixel')
        self.table = nn.Parameter(torch.empty(channels, max_size, max_size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all vectors anew."""
        nn.init.normal_(self.table)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) -> the same shape."""
        height, width = x.shape[2:]
        return x + self.table[:, :height, :width].to(x.dtype)


def check_max_size(value, owner: str, unit: str) -> None:
    """Refuse what is no side of a map.

    Raises:
        ValueError: names ``owner`` and what it has a vector for.
    """
    if type(value) is not int or value < 1:
        raise ValueError(
            'max_size: expected the largest side of a map in pixels, as '
            f'{owner} has a vector for each {unit} in it, got {value!r}')


#: Encoding -> the arguments that it takes.
ENCODINGS: dict[str | None, tuple] = {
    'quadratic': (),
    'learned': ('max_size', 'encoding_dim'),
    'absolute': ('max_size', ),
    None: (),
}


def check_encoding(name, **arguments) -> None:
    """Refuse an unknown encoding, and arguments that it does not take.

    Raises:
        ValueError: says which take them.
    """
    if name not in [*ENCODINGS]:
        raise ValueError(f'encoding: expected one of {[*ENCODINGS]}, got '
                         f'{name!r}')
    for key, value in arguments.items():
        if value is not None and key not in ENCODINGS[name]:
            takers = [own for own, keys in ENCODINGS.items() if key in keys]
            raise ValueError(
                f'{key}: expected it with an encoding of {takers} only, got '
                f'it with {name!r}; leave it out')


def build_relative(name, num_heads: int, max_size, dim):
    """A relative encoding by its name; None for another or none."""
    if name == 'quadratic':
        return QuadraticEncoding(num_heads)
    if name == 'learned':
        return LearnedEncoding(
            num_heads, max_size, **({} if dim is None else dict(dim=dim)))
    return None
