"""Pooling over space, of maps and of maps known by their moments.

A fused block passes a :class:`PooledMap` to its step instead of each map: a
known mean is not recomputed, and f = scale · z + shift is never materialised,
with z the last convolution's output.
"""
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.fx
from torch import Tensor

from ..utils.precision import float32_or_wider


def global_mean(x: 'Tensor | PooledMap') -> Tensor:
    """GAP in float32 or wider: (N, C, H, W) -> (N, C, 1, 1)."""
    return _pooled(x).mean


def global_max(x: Tensor) -> Tensor:
    """GMP in the dtype of x: (N, C, H, W) -> (N, C, 1, 1).

    The gradient goes to one of equal values, as in a pooling layer (``amax``
    divides it, in a backward pass that is several times slower).
    """
    return x.flatten(2).max(2).values[:, :, None, None]


def global_std(x: 'Tensor | PooledMap', eps: float = 0.) -> Tensor:
    """Unbiased standard deviation over space: (N, C, H, W) -> (N, C, 1, 1).

    The root of (variance + ``eps``), in float32 or wider, with a gradient
    everywhere; 0 where H·W = 1.
    """
    pooled = _pooled(x)
    return _unbiased(pooled.deviation_norm, pooled.size, eps)


def global_linear(x: 'Tensor | PooledMap',
                  linear: Callable[[Tensor], Tensor]) -> Tensor:
    """A linear function of each channel's map: (N, C, H, W) -> (N, C, 1, 1).

    A constant map of any size has the value of one of a single pixel.
    """
    return _pooled(x).transform(linear)


class ScaledMap(NamedTuple):
    """A map ⊗ Δt, not yet multiplied; a map that exists is its values."""
    values: 'Tensor | AffineMap'
    step_size: Tensor


class PooledMap:
    """A map (N, C, H, W) that is known by its moments over space."""
    source: Tensor  # of the same shape

    @property
    def size(self) -> int:
        """H·W."""
        return self.source.size(2) * self.source.size(3)


class BuiltMap(PooledMap):
    """A map that exists, ``values``, and its mean over space if known."""

    def __init__(self, values: Tensor, mean: Tensor | None = None):
        self.values = self.source = values
        self._mean = mean

    @property
    def mean(self) -> Tensor:
        """Mean over space, (N, C, 1, 1), float32 or wider; computed once."""
        if self._mean is None:
            self._mean = _mean(self.values)
        return self._mean

    @property
    def deviation_norm(self) -> Tensor:
        """2-norm over space of the map less its mean, as :attr:`mean`."""
        return _deviation_norm(self.values)

    def transform(self, linear: Callable[[Tensor], Tensor]) -> Tensor:
        """:func:`global_linear` of the map itself."""
        return linear(self.values)


class AffineMap(PooledMap):
    """f = scale · z + shift per channel of a ResidualTail, never built."""

    def __init__(self, tail: Any):
        self.tail, self.source = tail, tail.map

    @property
    def mean(self) -> Tensor:
        """Mean over space, (N, C, 1, 1), float32 or wider."""
        return self.tail.moments.mean_f

    @property
    def deviation_norm(self) -> Tensor:
        """2-norm over space of f less its mean: |scale| times that of z."""
        m = self.tail.moments
        if m.variance is None:
            norm = _deviation_norm(self.tail.map)
        else:
            square = m.variance * self.size
            # A constant map has a gradient too, 0.
            norm = square.clamp_min(torch.finfo(square.dtype).tiny).sqrt()
        return m.scale.abs() * norm

    def transform(self, linear: Callable[[Tensor], Tensor]) -> Tensor:
        """:func:`global_linear`: scale · linear(z) + shift · linear(1)."""
        m = self.tail.moments
        one = linear(torch.ones_like(m.shift))
        return m.scale * linear(self.tail.map) + m.shift * one

    @torch.no_grad()
    def norm(self, step_size: Tensor | float = 1.) -> Tensor:
        """2-norm of each sample of f ⊗ Δt, (N, ); without a gradient."""
        # In double precision no square leaves the range; few values here.
        deviation = (self.deviation_norm * step_size).double()
        mean = (self.mean * step_size).double()
        square = deviation.square() + self.size * mean.square()
        return square.sum((1, 2, 3)).sqrt().to(self.mean.dtype)


def _pooled(x: Tensor | PooledMap) -> Any:
    return x if isinstance(x, PooledMap) else BuiltMap(x)


# Each call that reads a dtype is one node of a graph that torch.fx traces. No
# branch reads a size, for an exported graph would keep it.
@torch.fx.wrap
def _mean(x: Tensor) -> Tensor:
    # Not x.mean(), whose gradient is a map and not one number for it.
    total = x.sum((2, 3), keepdim=True, dtype=float32_or_wider(x.dtype))
    return total / (x.size(2) * x.size(3))


@torch.fx.wrap
def _deviation_norm(x: Tensor) -> Tensor:
    x = x.to(float32_or_wider(x.dtype))
    centred = x - x.mean((2, 3), keepdim=True)
    return torch.linalg.vector_norm(centred, dim=(2, 3), keepdim=True)


@torch.fx.wrap
def _unbiased(deviation_norm: Tensor, size: int, eps: float) -> Tensor:
    alone = 1 // size  # 1 where the norm is 0, and 0
    std = deviation_norm / (size - 1 + alone)**.5
    return (std.square() + eps).sqrt() * (1 - alone) if eps else std
