"""A block's end in few passes, if its maps are large: relu(x + BN(z) ⊗ Δt).

z is the last convolution's output and x the identity. Δt is a table
(N, C, 1, 1) that may depend on the moments of f = BN(z) and of x over space;
docs/performance.md says why no other map is written or kept.

    ResidualTail(norm, z, x)  _Measure: kernels.measure     z, x -> moments
    the caller                ordinary autograd             moments -> Δt
    .output(Δt)               _Output: kernels.output       -> y

and back, with g the gradient masked by the ReLU:

    _Output   kernels.step_gradient    g, Σ g, Σ g·(z - mean), gradient of Δt
    _Measure  kernels.input_gradients  dz = a · g + b · z + c, dx = g + d

The sums and Δt go from one to the other as the gradient of an output that has
no other use.
"""
from types import ModuleType

import torch
from torch import Tensor
from torch.autograd import Function

from ..utils.compilation import is_compiling, is_transforming
from ..utils.precision import float32_or_wider
from . import tail_reference
from .tail_kernels import FORMATS, usable_kernels
from .tail_reference import Gradients, Moments, Norm

#: Elements of a map from which on the kernels are used. The host takes longer
#: over a fused block than over the modules, on a GPU by 0.8 ms
#: (docs/performance.md; step_cost.py --least).
MIN_NUMEL = dict(cpu=2**18, cuda=2**25)


class ResidualTail:
    """The moments of z, BN(z) and x, then y from a step size.

    Args:
        norm (Norm): the BatchNorm of z.
        z (Tensor): the last convolution's output, (N, C, H, W).
        x (Tensor): the identity, the same shape, dtype and layout.
        pool_identity (bool): whether the mean of x is needed.

    Attributes:
        map (Tensor): z.
        moments (Moments): float32 or wider; ``centre`` and what follows it
            have no gradient.
    """

    def __init__(self, norm: Norm, z: Tensor, x: Tensor, pool_identity: bool):
        # In the graph self.map is z itself; the gradient of self._z is g.
        self.map = z
        pooled = x if pool_identity else None
        if is_compiling():
            self._z, self._x = z, x
            self.moments = tail_reference.measure(z, pooled, norm)
            return
        self._kernels = _kernels_for(z) or tail_reference
        self._z, self._x, self._sums, *moments = _Measure.apply(
            self._kernels, norm, pooled, z, x, norm.weight, norm.bias)
        self.moments = Moments(*moments)

    @staticmethod
    def supports(z: Tensor, x: Tensor) -> bool:
        """Whether there are kernels for these maps, and a gain from them.

        Not while ``torch.jit`` traces, whose graph should show plain
        operators, nor under ``torch.func`` and forward-mode differentiation,
        nor for subclasses of tensors.
        """
        if is_compiling():
            return z.shape == x.shape and z.dtype == x.dtype and z.numel() > 0
        return (is_large(z) and z.shape == x.shape and z.dtype == x.dtype
                and type(z) is type(x) is Tensor and z.device == x.device
                and z.stride() == x.stride() and not is_transforming()
                and _kernels_for(z) is not None)

    def output(self, step_size: Tensor) -> Tensor:
        """y = relu(x + BN(z) ⊗ Δt), (N, C, H, W); to be called once.

        Δt is (N, C, 1, 1) or (1, C, 1, 1).
        """
        m = self.moments
        step_size = step_size.to(m.mean.dtype)
        if step_size.shape != m.mean.shape:
            step_size = step_size.expand_as(m.mean)
        if is_compiling():
            return tail_reference.output(
                self._z, self._x, m.scale, m.shift, step_size)
        return _Output.apply(self._kernels, self._z, self._x, self._sums,
                             m.mean, self.map, step_size, m.scale, m.shift)


def _kernels_for(z: Tensor) -> ModuleType | None:
    """The module of the fastest kernels for a map; None where the modules are
    as fast, or where there are none.
    """
    if not is_large(z):
        return None
    for memory_format in FORMATS[z.device.type]:
        if z.is_contiguous(memory_format=memory_format):
            return usable_kernels(z.device, z.dtype, memory_format)
    return None


def is_large(z: Tensor) -> bool:
    """Whether a map has as many elements as pay on its device."""
    return 0 != z.numel() >= MIN_NUMEL.get(z.device.type, torch.inf)


class _Measure(Function):
    """z, x -> z, x, a carrier and the moments.

    The gradient that comes back for z is g, not that of f, so that no map is
    written for it; that of the carrier is Σ g, Σ g·(z - mean) and Δt. Where
    those of z and the carrier are None, they are parts of the others.
    """

    @staticmethod
    def forward(ctx, kernels, norm, pooled, z, x, weight, bias):
        m = kernels.measure(z, pooled, norm)
        ctx.kernels, ctx.eps = kernels, norm.eps
        ctx.save_for_backward(z, m.mean, m.scale, m.centre, m.inverse, weight,
                              *(norm.running or ()))
        ctx.mark_non_differentiable(m.centre, m.square, m.inverse)
        ctx.set_materialize_grads(False)
        carrier = m.mean.new_empty(()).expand(3, *m.mean.shape)
        return z.view_as(z), x.view_as(x), carrier, *m

    @staticmethod
    def backward(ctx, masked, dx, sums, *grads):
        z, mean, scale, centre, inverse, weight, *running = ctx.saved_tensors
        given = Gradients(*grads[:6])
        if torch.is_grad_enabled():
            norm = Norm(weight, None, ctx.eps, tuple(running) or None)
            dz, *rows = _plain_gradients(z, norm, given)
            if given.identity_mean is not None:
                d = given.identity_mean / z[0, 0].numel()
                dx = (d if dx is None else dx + d).expand_as(z).to(z.dtype)
        else:
            if masked is None:  # y has no part in the loss
                masked = torch.zeros_like(z)
                sums = mean.new_zeros((3, *mean.shape))
            # Of the others a backward pass reads that they are there.
            m = Moments(mean, None if running else mean, None, mean, scale,
                        scale, centre, centre, inverse)
            dz, dx, *rows = ctx.kernels.input_gradients(
                masked, z, *sums.unbind(), m, given)
        return None, None, None, dz, dx, *(
            row.view(-1) if row is not None and needed else None
            for row, needed in zip(rows, ctx.needs_input_grad[5:]))


def _plain_gradients(z: Tensor, norm: Norm, given: Gradients) -> tuple:
    """Gradients of z, weight and bias that have derivatives themselves."""
    zeros = z.new_zeros(z.shape[1], dtype=float32_or_wider(z.dtype))
    weight = torch.ones_like(zeros) if norm.weight is None else norm.weight
    given = given._replace(identity_mean=None)
    if all(grad is None for grad in given):
        return None, None, None

    def moments(z, weight, bias):
        m = tail_reference.measure(
            z, None, norm._replace(weight=weight, bias=bias))
        return tuple(value for value, grad in zip(m, given)
                     if grad is not None)

    _, found = torch.autograd.functional.vjp(
        moments, (z, weight, zeros),
        tuple(grad for grad in given if grad is not None), create_graph=True)
    return found


class _Output(Function):
    """z, x, Δt -> y; the gradient of z is that of :class:`_Measure`.

    A second derivative gives true gradients, to z as it came to that, and to
    the norm's scale and shift.
    """

    @staticmethod
    def forward(ctx, kernels, z, x, sums, mean, z_before, step, scale, shift):
        y = kernels.output(z, x, scale, shift, step)
        ctx.kernels = kernels
        ctx.save_for_backward(z_before, y, step, mean, scale, shift)
        return y

    @staticmethod
    def backward(ctx, grad):
        z, y, step, mean, scale, shift = ctx.saved_tensors
        if torch.is_grad_enabled():
            masked = torch.where(y <= 0, 0, grad)
            df = masked.to(step.dtype) * step
            d_step = masked * (scale * z + shift)
            return (None, None, masked, None, None, (df * scale).to(z.dtype),
                    d_step.sum((2, 3), keepdim=True),
                    (df * z).sum((0, 2, 3), keepdim=True),
                    df.sum((0, 2, 3), keepdim=True))
        masked, total, moment, d_step = ctx.kernels.step_gradient(
            grad, y, z, mean, scale, shift)
        sums = torch.stack([total, moment, step])
        return None, masked, masked, sums, None, None, d_step, None, None
