"""Maps that are known by their moments, in the place of the maps themselves.

Where a step size depends on means and deviations over space alone, f = scale
· z + shift of the last convolution's output z need not be built for it.
"""
import torch
from torch import Tensor


def deviation_norm(x: Tensor) -> Tensor:
    """2-norm over space of x - mean(x): (N, C, H, W) -> (N, C, 1, 1)."""
    x = x.to(torch.promote_types(x.dtype, torch.float32))
    centred = x - x.mean((2, 3), keepdim=True)
    return torch.linalg.vector_norm(centred, dim=(2, 3), keepdim=True)


class PooledMap:
    """A map (N, C, H, W) whose mean over space has been taken.

    Args:
        values (Tensor): the map.
        mean (Tensor): (N, C, 1, 1), float32 or wider.
    """

    def __init__(self, values: Tensor, mean: Tensor):
        self.values, self.mean = values, mean


class AffineMap:
    """f = scale · z + shift a sample and channel, which is never built.

    Args:
        tail (ResidualTail): has z and its moments.
        scale (Tensor): (N, C, 1, 1) or (1, C, 1, 1).
        shift (Tensor): likewise.
    """

    def __init__(self, tail, scale: Tensor, shift: Tensor):
        self.tail, self.scale, self.shift = tail, scale, shift
        self.dtype = scale.dtype
        self.size = tail.map[0, 0].numel()

    def times(self, step: Tensor) -> 'AffineMap':
        """f ⊗ Δt, for Δt of shape (N, C, 1, 1)."""
        return AffineMap(self.tail, self.scale * step, self.shift * step)

    @property
    def mean(self) -> Tensor:
        """Mean over space, (N, C, 1, 1)."""
        return self.scale * self.tail.mean + self.shift

    @property
    def deviation_norm(self) -> Tensor:
        """2-norm over space of f - mean(f), (N, C, 1, 1)."""
        if self.tail.variance is None:
            norm = deviation_norm(self.tail.map)
        else:
            square = self.tail.variance * self.size
            # A constant map has a gradient too, 0.
            norm = square.clamp_min(torch.finfo(self.dtype).tiny).sqrt()
        return self.scale.abs() * norm

    def transform(self, linear, of_ones: Tensor) -> Tensor:
        """A linear function of each channel's map.

        Args:
            linear (callable): (N, C, H, W) -> (N, C, 1, 1).
            of_ones (Tensor): what it gives for ones, (1, C, 1, 1).
        """
        return self.scale * linear(self.tail.map) + self.shift * of_ones

    @torch.no_grad()
    def norm(self) -> Tensor:
        """2-norm of each sample, (N, ); without a gradient."""
        square = self.deviation_norm.square() + self.size * self.mean.square()
        return square.sum((1, 2, 3)).sqrt()
