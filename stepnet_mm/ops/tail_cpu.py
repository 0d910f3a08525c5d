"""The kernels of the fused tail for contiguous maps on CPUs.

Torch's BatchNorm over N·C channels of one image is, without statistics of its
own, scale · z + shift for each sample and channel; and the parameter half of
its backward is Σ g and Σ g·(z - mean). Both are one vectorised pass, where
elementwise operators take two or three. (torch._add_relu would make 0 of a
NaN.)

Signatures and results are as in :mod:`tail_reference`;
``input_gradients`` writes over ``masked``.
"""
import functools

import torch
from torch import Tensor

from ..utils.precision import float32_or_wider
from . import tail_reference
from .tail_reference import Gradients, Moments

#: Σz² is off by about eps · mean², so beyond this ratio of mean² to variance
#: a row takes a second pass.
RATIO = 64


def moments(z: Tensor, variance: bool) -> tuple:
    """Mean and (or None) biased variance over space, two tables."""
    dtype = float32_or_wider(z.dtype)
    mean = z.mean((2, 3), keepdim=True, dtype=dtype)
    if not variance:
        return mean, None
    norm = torch.linalg.vector_norm(z, dim=(2, 3), keepdim=True, dtype=dtype)
    square = mean.square()
    var = norm.square_().div_(z[0, 0].numel()).sub_(square)
    poor = (square > RATIO * var).flatten().nonzero().flatten()
    if len(poor):
        rows = _rows(z)[0, poor].to(dtype) - mean.view(-1, 1)[poor]
        exact = rows.square().mean(1) - rows.mean(1).square()
        var.view(-1)[poor] = exact
    return mean, var.clamp_min_(0)


#: All moments; that of x where it is given.
measure = functools.partial(tail_reference.measure, moments=moments)


def output(z: Tensor, x: Tensor, scale: Tensor, shift: Tensor,
           step: Tensor) -> Tensor:
    """The map relu(x + f ⊗ Δt), Δt a table."""
    return _affine(z, scale * step, shift * step).add_(x).relu_()


def step_gradient(grad: Tensor, y: Tensor, z: Tensor, mean: Tensor,
                  scale: Tensor, shift: Tensor) -> tuple:
    """The ReLU's gradient g and the tables Σ g, Σ g·(z - mean), Σ g·f."""
    masked = torch.ops.aten.threshold_backward(grad, y, 0).contiguous()
    one = torch.ones_like(mean).view(-1)
    _, moment, total = torch.ops.aten.native_batch_norm_backward(
        _rows(masked), _rows(z), one, mean.view(-1), one, None, None, False,
        0., [False, True, True])
    total, moment = total.view_as(mean), moment.view_as(mean)
    return masked, total, moment, tail_reference.of_step(
        total, moment, mean, scale, shift)


def input_gradients(masked: Tensor, z: Tensor, total: Tensor, moment: Tensor,
                    step: Tensor, m: Moments, grads: Gradients) -> tuple:
    """The maps dz and dx, which is ``masked``; the norm's two rows."""
    a, b, c, d, weight, bias = tail_reference.input_tables(
        z, total, moment, step, m, grads)
    if b is None:
        dz = _affine(masked, a, c)
    else:
        dz = _affine(z, b, c).addcmul_(masked, a.to(z.dtype))
    return dz, masked if d is None else masked.add_(d), weight, bias


def _affine(z: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    # Written to, for a view could not be changed in place behind a Function.
    out = torch.empty_like(z)
    scale, shift = scale.reshape(-1), shift.reshape(-1)
    zero, one = torch.zeros_like(scale), torch.ones_like(scale)
    unused = scale.new_empty(0)
    torch.ops.aten.native_batch_norm.out(
        _rows(z), scale, shift, zero, one, False, 0., 0.,
        out=_rows(out), save_mean=unused, save_invstd=unused)
    return out


def _rows(z: Tensor) -> Tensor:
    return z.view(1, z.shape[0] * z.shape[1], -1)
