"""A residual block's end in few passes: y = relu(x + scale · z + shift).

z is the last convolution's output and x the identity; scale and shift are
tables (N, C, 1, 1) that may depend on the moments of both over space, as a
BatchNorm's and a channel gate's do. No map but y is written in the forward
pass and none but z and y is kept, both of which a plain block keeps too.

    ResidualTail(z, x)    _Moments: kernels.moments           z, x -> tables
    the caller            ordinary autograd           tables -> scale, shift
    .output(scale, shift) _ScaleAddRelu: kernels.scale_add_relu         -> y

With g the gradient masked by the ReLU, the backward pass of the tables needs
only Σ g and Σ g·z of the maps, and gives back b · z + c to z and d to x, with
one b, c and d per sample and channel. So it has two passes over the maps,

1. :class:`_ScaleAddRelu`, kernels.mask_and_sum: g, Σ g, Σ g·(z - mean),
2. :class:`_Moments`, kernels.input_gradients: dz = scale · g + b · z + c and
   dx = g + d,

and ordinary autograd between them.
"""
from types import ModuleType

import torch
from torch import Tensor
from torch.autograd import Function, forward_ad

from . import tail_reference
from .compilation import is_compiling
from .tail_check import usable_kernels

#: Elements of a map from which on the kernels are used on a GPU. The small
#: operators around them cost the host some 1.8 ms a block: with fewer it has
#: not launched them when the GPU is through (docs/performance.md).
LEAST_ON_GPU = 2**25


class ResidualTail:
    """The moments of z and x, then y from a scale and a shift.

    Args:
        z (Tensor): the last convolution's output, (N, C, H, W).
        x (Tensor): the identity, the same shape, dtype and layout.
        variance (bool): whether the variance of z is needed.
        pool_identity (bool): whether the mean of x is needed.

    Attributes:
        map (Tensor): z.
        mean (Tensor): of z over space, (N, C, 1, 1), float32 or wider.
        variance (Tensor | None): likewise, biased.
        identity_mean (Tensor | None): mean of x over space, likewise.
    """

    def __init__(self, z: Tensor, x: Tensor, variance: bool,
                 pool_identity: bool):
        # In the graph self.map is z itself; the gradient of self._z is g.
        self.map = self._z = z
        self._x = x
        self._kernels = _direct_kernels(z)
        arguments = z, x, variance, pool_identity, take_attached_mean(x)
        if self._kernels is None:
            self._z, self._x, self._scale, *moments = _Moments.apply(
                *arguments)
        else:
            moments = _measure(self._kernels, *arguments)
        self.mean, self.variance, self.identity_mean = moments

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

    def output(self, scale: Tensor, shift: Tensor) -> Tensor:
        """y = relu(x + scale · z + shift), (N, C, H, W); to be called once.

        Args:
            scale (Tensor): (N, C, 1, 1), the dtype of :attr:`mean`.
            shift (Tensor): likewise.
        """
        scale, shift = scale.expand_as(self.mean), shift.expand_as(self.mean)
        if self._kernels is not None:
            return self._kernels.scale_add_relu(
                self._z, self._x, scale, shift)
        return _ScaleAddRelu.apply(self._z, self._x, self._scale, scale, shift,
                             self.map, self.mean)


def attach_mean(y: Tensor) -> None:
    """Take the mean of a map over space while it is still in the caches.

    It travels on the tensor to the :class:`ResidualTail` that has this very
    tensor as its x. A compiler needs no such help, and a tensor without
    a version, as in inference mode, might change in between. (A change
    through ``.data`` is not seen.)
    """
    if is_compiling() or y.is_inference() or (
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


def _direct_kernels(z: Tensor) -> ModuleType | None:
    """Kernels to call without the autograd functions below, or None.

    Where no derivative is wanted, and for a compiler, which makes two passes
    of the plain formulas; through the functions it took 1.09 of the plain
    network's time instead of 0.89.
    """
    if is_compiling():
        return tail_reference
    return None if torch.is_grad_enabled() else _kernels_for(z)


def _backward_kernels(z: Tensor) -> ModuleType:
    # A second derivative needs operators that have a derivative, a compiler
    # of the backward pass ones that it can see through.
    if torch.is_grad_enabled() or is_compiling():
        return tail_reference
    return _kernels_for(z) or tail_reference


def _measure(kernels, z, x, variance, pool_identity, attached) -> tuple:
    """Mean and variance of z, mean of x; None where not wanted."""
    if not pool_identity:
        attached = None
    elif attached is None:
        attached, _ = kernels.moments(x, False)
    return (*kernels.moments(z, variance), attached)


class _Moments(Function):
    """z, x -> z, x and their moments.

    The gradient that comes back for z is g, not scale · g, so that no map is
    written for the product; the scale itself comes back beside it, as the
    "gradient" of an output that has no other use.
    """

    @staticmethod
    def forward(ctx, z, x, variance, pool_identity, attached):
        moments = _measure(
            _kernels_for(z), z, x, variance, pool_identity, attached)
        ctx.save_for_backward(z, moments[0])
        ctx.set_materialize_grads(False)
        scale = torch.empty_like(moments[0])
        return z.view_as(z), x.view_as(x), scale, *moments

    @staticmethod
    def backward(ctx, masked, _, scale, d_mean, d_var, d_identity):
        z, mean = ctx.saved_tensors
        size = z[0, 0].numel()
        if masked is None:  # y has no part in the loss
            masked, scale = torch.zeros_like(z), torch.zeros_like(mean)
        b = None if d_var is None else d_var * (2 / size)
        c = torch.zeros_like(mean) if d_mean is None else d_mean / size
        c = c if b is None else c - b * mean
        d = None if d_identity is None else d_identity / size
        dz, dx = _backward_kernels(z).input_gradients(
            masked, z, scale, b, c, d)
        return dz, dx, None, None, None


class _ScaleAddRelu(Function):
    """z, x, scale, shift -> y; the gradient of z is that of `_Moments`.

    The last arguments are z as it came to `_Moments`, to which a second
    derivative gives a true gradient, and its mean.
    """

    @staticmethod
    def forward(ctx, z, x, _, scale, shift, z_before, mean):
        kernels = _kernels_for(z) or tail_reference
        y = kernels.scale_add_relu(z, x, scale, shift)
        ctx.save_for_backward(z_before, y, scale, mean)
        return y

    @staticmethod
    def backward(ctx, grad):
        z, y, scale, mean = ctx.saved_tensors
        masked, total, moment = _backward_kernels(z).mask_and_sum(
            grad, y, z, mean)
        moment = moment + mean * total
        return masked, masked, scale, moment, total, None, None
