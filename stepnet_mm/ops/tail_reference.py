"""The formulas of the fused tail's kernels in plain differentiable torch.

A map is (N, C, H, W), a table (N, C, 1, 1) and a row (1, C, 1, 1), both in
float32 or wider. The tests compare the other kernels with these; second
derivatives are taken of these, and ``torch.compile`` makes its own kernels
from them.
"""
from typing import NamedTuple

import torch
from torch import Tensor

from ..utils.precision import float32_or_wider


class Norm(NamedTuple):
    """A BatchNorm: weight and bias (C, ), ε, and running statistics.

    ``running`` has their mean and variance, (C, ), where these normalise;
    None where the batch's own do.
    """
    weight: Tensor | None
    bias: Tensor | None
    eps: float
    running: tuple[Tensor, Tensor] | None = None


class Moments(NamedTuple):
    """Moments over space of z and x, and f = BN(z) = scale · z + shift."""
    mean: Tensor  # of z, a table
    variance: Tensor | None  # of z, biased; None with running statistics
    identity_mean: Tensor | None  # of x
    mean_f: Tensor
    scale: Tensor  # a row, as all below
    shift: Tensor
    centre: Tensor  # what the norm subtracts
    square: Tensor  # and divides by the root of
    inverse: Tensor


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


def measure(z: Tensor, x: Tensor | None, norm: Norm,
            moments=moments) -> Moments:
    """All moments; that of x where it is given."""
    mean, variance = moments(z, norm.running is None)
    identity_mean = None if x is None else moments(x, False)[0]
    if norm.running is None:
        centre = mean.mean(0, keepdim=True)
        square = (variance + (mean - centre).square()).mean(0, keepdim=True)
    else:
        centre, square = [_row(v, mean) for v in norm.running]
    inverse = (square + norm.eps).rsqrt()
    # Never the same tensor: one of them has a gradient.
    scale = inverse.clone() if norm.weight is None else (
        inverse * _row(norm.weight, mean))
    if norm.bias is None:
        shift = -centre * scale
    else:
        shift = torch.addcmul(_row(norm.bias, mean), centre, scale, value=-1)
    return Moments(mean, variance, identity_mean,
                   torch.addcmul(shift, scale, mean), scale, shift, centre,
                   square, inverse)


def _row(values: Tensor, like: Tensor) -> Tensor:
    return values.to(like.dtype).view(1, -1, 1, 1)


def output(z: Tensor, x: Tensor, scale: Tensor, shift: Tensor,
           step: Tensor) -> Tensor:
    """The map relu(x + f ⊗ Δt), Δt a table."""
    return (z * (scale * step) + shift * step + x).relu().to(z.dtype)


def step_gradient(grad: Tensor, y: Tensor, z: Tensor, mean: Tensor,
                  scale: Tensor, shift: Tensor) -> tuple:
    """The ReLU's gradient g and the tables Σ g, Σ g·(z - mean), Σ g·f."""
    masked = torch.where(y <= 0, 0, grad)
    wide = masked.to(float32_or_wider(z.dtype))
    total = wide.sum((2, 3), keepdim=True)
    moment = (wide * (z - mean)).sum((2, 3), keepdim=True)
    return masked, total, moment, of_step(total, moment, mean, scale, shift)


def of_step(total: Tensor, moment: Tensor, mean: Tensor, scale: Tensor,
            shift: Tensor) -> Tensor:
    """Σ g·f, the gradient of Δt."""
    return scale * moment + torch.addcmul(shift, scale, mean) * total


class Gradients(NamedTuple):
    """The gradients of a tail's :class:`Moments`, None for 0."""
    mean: Tensor | None = None
    variance: Tensor | None = None
    identity_mean: Tensor | None = None
    mean_f: Tensor | None = None
    scale: Tensor | None = None
    shift: Tensor | None = None


def input_gradients(masked: Tensor, z: Tensor, total: Tensor, moment: Tensor,
                    step: Tensor, m: Moments, grads: Gradients) -> tuple:
    """The maps dz and dx = g + d, and the norm's gradients as two rows."""
    a, b, c, d, weight, bias = input_tables(z, total, moment, step, m, grads)
    dz = masked * a + c
    dz = dz if b is None else dz + b * z
    dx = masked if d is None else masked + d
    return dz.to(z.dtype), dx.to(z.dtype), weight, bias


def input_tables(z: Tensor, total: Tensor, moment: Tensor, step: Tensor,
                 m: Moments, grads: Gradients) -> tuple:
    """a, b, c and d of dz = a · g + b · z + c and dx = g + d; two rows.

    b and d may be None, for 0. With g the gradient of f ⊗ Δt, that of f sums
    over space to p = Δt · Σ g + d mean_f, and its product with z - centre to
    q; the rest is the backward pass of a BatchNorm.
    """
    size = z[0, 0].numel()
    p = step * total if grads.mean_f is None else torch.addcmul(
        grads.mean_f, step, total)
    q = torch.addcmul(step * moment, m.mean - m.centre, p)
    bias, weight = p.sum(0, keepdim=True), q.sum(0, keepdim=True)
    if grads.shift is not None:
        bias = bias + grads.shift
        weight = weight - m.centre * grads.shift
    if grads.scale is not None:
        weight = weight + grads.scale
    weight = weight * m.inverse
    a, b, c = m.scale * step, None, torch.zeros_like(m.mean)
    if m.variance is not None:
        # The batch's mean and variance depend on z as well.
        share = m.scale / (len(z) * size)
        slope = share * m.inverse * weight
        b, c = -slope, c + (slope * m.centre - share * bias)
    if grads.mean_f is not None:
        c = torch.addcmul(c, m.scale, grads.mean_f, value=1 / size)
    if grads.variance is not None:
        slope = grads.variance * (2 / size)
        b, c = slope if b is None else b + slope, c - slope * m.mean
    if grads.mean is not None:
        c = c + grads.mean / size
    d = None if grads.identity_mean is None else grads.identity_mean / size
    return a, b if b is None else b.expand_as(a), c, d, weight, bias
