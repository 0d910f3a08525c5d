"""A residual block's end in few passes: y = relu(x + BN(z) ⊗ Δt).

z is the last convolution's output and x the identity. Δt is a table
(N, C, 1, 1) that may depend on the moments of f = BN(z) and of x over space.
No map but y is written in the forward pass, and none but z and y is kept,
both of which a plain block keeps too.

    ResidualTail(norm, z, x)  _Measure: kernels.measure     z, x -> moments
    the caller                ordinary autograd             moments -> Δt
    .output(Δt)               _Output: kernels.output       -> y

The backward pass has two passes over the maps, with g the gradient masked by
the ReLU,

1. :class:`_Output`, kernels.step_gradient: g, Σ g, Σ g·(z - mean), and from
   these the gradient of Δt,
2. :class:`_Measure`, kernels.input_gradients: dz = a · g + b · z + c and
   dx = g + d, with one a, b, c and d per sample and channel,

and ordinary autograd between them. :class:`_Sums` takes the sums from one to
the other.
"""
from collections.abc import Callable, Sequence
from types import ModuleType

import torch
from torch import Tensor
from torch.autograd import Function, forward_ad

from . import tail_reference
from .compilation import is_compiling
from .tail_check import usable_kernels
from .tail_reference import Gradients, Moments, Norm

#: Elements of a map from which on the kernels are used on a GPU. The host
#: takes 0.8 ms longer over a block than with the modules: with fewer elements
#: it has not launched all when the GPU is through (docs/performance.md).
LEAST_ON_GPU = 2**24


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
        self.map, self._norm = z, norm
        attached = take_attached_mean(x)
        pooled = x if pool_identity else None
        if is_compiling():
            self._z, self._x, self._sums = z, x, None
            self.moments = tail_reference.measure(z, pooled, norm)
            return
        self._sums = _Sums(_kernels_for(z) or tail_reference)
        self._z, self._x, *moments = _Measure.apply(
            self._sums, norm, pooled, attached, z, x, norm.weight, norm.bias)
        self.moments = Moments(*moments)

    @staticmethod
    def supports(z: Tensor, x: Tensor) -> bool:
        """Whether there are kernels for these maps, and a gain from them.

        Not while ``torch.jit`` traces, whose graph should show plain
        operators, nor under ``torch.func`` and forward-mode differentiation,
        nor for subclasses of tensors.
        """
        if z.shape != x.shape or z.dtype != x.dtype or z.numel() == 0:
            return False
        if is_compiling():
            return True
        return (type(z) is type(x) is Tensor and z.device == x.device
                and z.stride() == x.stride() and not torch.jit.is_tracing()
                and forward_ad._current_level < 0
                and not torch._C._are_functorch_transforms_active()
                and _kernels_for(z) is not None)

    def output(self, step_size: Tensor) -> Tensor:
        """y = relu(x + BN(z) ⊗ Δt), (N, C, H, W); to be called once.

        Args:
            step_size (Tensor): Δt, (N, C, 1, 1) or (1, C, 1, 1).
        """
        m = self.moments
        step_size = step_size.to(m.mean.dtype)
        if step_size.shape != m.mean.shape:
            step_size = step_size.expand_as(m.mean)
        if self._sums is None:
            return tail_reference.output(
                self._z, self._x, m.scale, m.shift, step_size)
        return _Output.apply(
            self._sums, self._norm, m, self._z, self._x, step_size, self.map,
            self._norm.weight, self._norm.bias)


def attach_mean(y: Tensor) -> None:
    """Take the mean of a map over space while it is still in the caches.

    It travels on the tensor to the :class:`ResidualTail` that has this very
    tensor as its x. A compiler needs no such help, a GPU's caches are too
    small, and a tensor without a version, as in inference mode, might change
    in between. (A change through ``.data`` is not seen.)
    """
    if is_compiling() or y.is_inference() or y.device.type != 'cpu' or (
            not ResidualTail.supports(y, y)):
        return
    kernels = _kernels_for(y)
    if kernels is not None:
        mean, _ = kernels.moments(y.detach(), False)
        vars(y)['attached_mean'] = (id(y), y._version), mean


def take_attached_mean(x: Tensor) -> Tensor | None:
    """Take the mean of :func:`attach_mean` off x; None if x has changed."""
    if is_compiling():
        return None
    state, mean = vars(x).pop('attached_mean', (None, None))
    return mean if state and state == (id(x), x._version) else None


def _kernels_for(z: Tensor) -> ModuleType | None:
    """The module of the fastest kernels for a map; None where the modules are
    as fast, or where there are none.
    """
    if z.device.type == 'cuda' and z.numel() < LEAST_ON_GPU:
        return None
    if z.is_contiguous():
        memory_format = torch.contiguous_format
    elif z.device.type == 'cuda' and z.is_contiguous(
            memory_format=torch.channels_last):
        memory_format = torch.channels_last
    else:
        return None
    if z.device.type not in ('cpu', 'cuda'):
        return None
    return usable_kernels(z.device, z.dtype, memory_format)


class _Sums:
    """The kernels of a tail; then Σ g, Σ g·(z - mean) and Δt as well."""

    def __init__(self, kernels: ModuleType):
        self.kernels = kernels
        self.tables: tuple[Tensor, ...] | None = None


class _Measure(Function):
    """z, x -> z, x and their moments.

    The gradient that comes back for z is g, not that of f, so that no map is
    written for it.
    """

    @staticmethod
    def forward(ctx, sums, norm, pooled, attached, z, x, weight, bias):
        m = sums.kernels.measure(z, pooled, norm, attached)
        ctx.sums, ctx.norm = sums, norm
        ctx.save_for_backward(z, m.mean, m.scale, m.centre, m.inverse)
        ctx.mark_non_differentiable(m.centre, m.square, m.inverse)
        ctx.set_materialize_grads(False)
        return z.view_as(z), x.view_as(x), *m

    @staticmethod
    def backward(ctx, masked, dx, *grads):
        z, mean, scale, centre, inverse = ctx.saved_tensors
        given, parameters = Gradients(*grads[:6]), ctx.norm[:2]
        if torch.is_grad_enabled():
            dz, *rows = _differentiable(
                lambda z, *parameters: tail_reference.measure(
                    z, None, Norm(*parameters, *ctx.norm[2:])),
                (z, *parameters), given._replace(identity_mean=None))
            if given.identity_mean is not None:
                d = given.identity_mean / z[0, 0].numel()
                dx = (d if dx is None else dx + d).expand_as(z).to(z.dtype)
            return *[None] * 4, dz, dx, *rows
        if masked is None:  # y has no part in the loss
            masked = torch.zeros_like(z)
            tables = [torch.zeros_like(mean)] * 3
        else:
            tables, ctx.sums.tables = ctx.sums.tables, None
        # Of the others a backward pass reads that they are there.
        m = Moments(mean, None if ctx.norm.running else mean, None, mean,
                    scale, scale, centre, centre, inverse)
        dz, dx, *rows = ctx.sums.kernels.input_gradients(
            masked, z, *tables, m, given)
        return *[None] * 4, dz, dx, *(
            None if parameter is None else row.view(-1).to(parameter.dtype)
            for row, parameter in zip(rows, parameters))


class _Output(Function):
    """z, x, Δt -> y; the gradient of z is that of :class:`_Measure`.

    The last arguments are z as it came to that and the norm's parameters, to
    which a second derivative gives true gradients.
    """

    @staticmethod
    def forward(ctx, sums, norm, m, z, x, step, z_before, *parameters):
        y = sums.kernels.output(z, x, m.scale, m.shift, step)
        ctx.sums, ctx.norm = sums, norm
        ctx.save_for_backward(z_before, y, step, m.mean, m.scale, m.mean_f)
        return y

    @staticmethod
    def backward(ctx, grad):
        z, y, step, *tables = ctx.saved_tensors
        if torch.is_grad_enabled():
            def residual(z, step, *parameters):
                m = tail_reference.measure(
                    z, None, Norm(*parameters, *ctx.norm[2:]))
                return [(m.scale * z + m.shift) * step]

            masked = torch.where(y <= 0, 0, grad)
            dz, d_step, *rows = _differentiable(
                residual, (z, step, *ctx.norm[:2]), [masked])
            return *[None] * 4, masked, d_step, dz, *rows
        masked, total, moment, d_step = ctx.sums.kernels.step_gradient(
            grad, y, z, *tables)
        # With its history the step would lead back to these sums.
        ctx.sums.tables = total, moment, step.detach()
        return *[None] * 3, masked, masked, d_step, None, None, None


def _differentiable(function: Callable, inputs: Sequence,
                    grads: Sequence) -> list:
    """Gradients of inputs that have derivatives; None for no gradient."""
    with torch.enable_grad():
        # Of one input, not of what another was computed from.
        inputs = [v if v is None else v.view_as(v) for v in inputs]
        outputs = function(*inputs)
    pairs = [(output, grad) for output, grad in zip(outputs, grads)
             if grad is not None and output.requires_grad]
    wanted = [v for v in inputs if v is not None and v.requires_grad]
    if not pairs or not wanted:
        return [None] * len(inputs)
    outputs, grads = zip(*pairs)
    found = iter(torch.autograd.grad(outputs, wanted, grads,
                                     create_graph=True, allow_unused=True))
    return [None if v is None or not v.requires_grad else next(found)
            for v in inputs]
