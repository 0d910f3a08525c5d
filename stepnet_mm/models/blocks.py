"""Residual blocks with a step size, for the ResNets of the mm libraries.

The libraries' blocks share ``conv{i}``, ``norm{i}``, ``relu``,
``downsample`` and ``with_cp``. Their forward ends in an in-place
``out += identity`` inside a closure, which no step can enter: this mixin
replaces the forward.
"""
import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.utils.checkpoint as cp
from torch import Tensor, nn
from torch.fx import Proxy

from ..ops import is_compiling
from ..utils.direct_calls import convolve, normalize, rectify
from .fusion import can_fuse, normalize_in_place, run_tail
from .pretrained_start import PretrainedStart


class StepBlock(PretrainedStart):
    """Mixin for BasicBlock and Bottleneck: Eq. 12 where ``step`` is set.

    Attributes:
        step (StepSize | None): the step-size module; None leaves Eq. 1.
        fused (bool): whether the block's end may run in one piece
            (:mod:`.fusion`).
    """
    fused = True
    # The library's:
    with_cp: bool
    with_plugins = False  # mmpretrain's blocks do not say so
    downsample: nn.Module | None
    relu: nn.Module
    drop_path: nn.Module  # mmpretrain's blocks alone have one
    forward_plugin: Callable[[Tensor, list[str]], Tensor]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.step = None

    def forward(self, x: Tensor) -> Tensor:
        """x_t -> x_{t+1}: (N, C, H, W) -> (N, C', H', W')."""
        # Once, so that a checkpointed block runs again as it ran before.
        fused = not isinstance(x, Proxy) and can_fuse(self, x)
        advance = self._advance_fused if fused else self._advance
        if self.with_cp and x.requires_grad:
            return cp.checkpoint(advance, x, use_reentrant=False)
        return advance(x)

    def _advance(self, x: Tensor) -> Tensor:
        """x_{t+1} = relu(x_t + f(x_t) ⊗ Δt), as the paper writes it."""
        residual, identity = self.residual(x), self._shortcut(x)
        if self.step is None or not self._shows_output():
            return self.end(identity, residual)
        y = self.end(identity, residual.clone())
        with torch.no_grad():
            residual.copy_(y)
        return y

    def _shows_output(self) -> bool:
        """Whether somebody looks at the last norm's output.

        The libraries write the block's output over it, so that Grad-CAM's
        default layer shows that; where f is 0 its map would be too.
        """
        return bool(self.last_norm._forward_hooks) and not (
            self.plugins_at_end or is_compiling())

    def residual(self, x: Tensor) -> Tensor:
        """f(x_t), before any step size: (N, C, H, W) -> (N, C', H', W')."""
        return self.complete(self._convolve(x))

    def end(self, identity: Tensor, residual: Tensor) -> Tensor:
        """x_t + f ⊗ Δt, or x_t + f without a step, then `activate`.

        Args:
            identity (Tensor): x_t in the shape of f, (N, C', H', W').
            residual (Tensor): f; written over where there is no step.
        """
        step, drop_path = self.step, self._modules.get('drop_path')
        if step is not None:
            residual = step(identity, residual)
        if drop_path is not None:
            residual = drop_path(residual)
        if step is None:  # in place, for no step can have kept f
            return self.activate(residual.add_(identity))
        return self.activate(residual + identity)

    def activate(self, x: Tensor) -> Tensor:
        """The activation behind the sum: ReLU."""
        return rectify(self.relu, x)

    def _advance_fused(self, x: Tensor) -> Tensor:
        """The fused branch: as `_advance` up to rounding, see fusion.py."""
        z = self._convolve_by(True, x)
        return run_tail(self, z, self._shortcut(x))

    def _shortcut(self, x: Tensor) -> Tensor:
        return x if self.downsample is None else self.downsample(x)

    def _convolve(self, x: Tensor) -> Tensor:
        """Up to the last convolution's output."""
        return self._convolve_by(False, x)

    def _convolve_by(self, in_place: bool, x: Tensor) -> Tensor:
        for i in range(1, self.num_convs):
            conv = self._modules[f'conv{i}']
            norm, z = getattr(self, f'norm{i}'), convolve(conv, x)
            x = (normalize_in_place(norm, conv, z) if in_place
                 else normalize(norm, z))
            x = self._plug_in(i, rectify(self.relu, x))
        return convolve(self.last_conv, x)

    def complete(self, z: Tensor) -> Tensor:
        """From the last convolution's output z to f: norm and plugins."""
        return self._plug_in(self.num_convs, normalize(self.last_norm, z))

    def _plug_in(self, i: int, x: Tensor) -> Tensor:
        names = self._plugins(i) if self.with_plugins else ()
        return self.forward_plugin(x, names) if names else x

    def _plugins(self, i: int) -> list[str]:
        return getattr(self, f'after_conv{i}_plugin_names')

    @property
    def plugins_at_end(self) -> list[str]:
        """Names of the plugins behind the last norm."""
        return self._plugins(self.num_convs) if self.with_plugins else []

    @property
    def last_conv(self) -> nn.Module:
        """The last convolution, whose output is z."""
        return getattr(self, f'conv{self.num_convs}')

    @property
    def last_norm(self) -> Any:
        """The norm layer behind the last convolution, None without one."""
        return getattr(self, f'norm{self.num_convs}')

    @property
    def num_convs(self) -> int:
        """2 in a BasicBlock, 3 in a Bottleneck."""
        return 3 if 'conv3' in self._modules else 2

    @property
    def step_channels(self) -> int:
        """Channels of f."""
        conv: Any = self.last_conv  # the library's conv_cfg decides
        return conv.out_channels


@functools.lru_cache(None)
def step_block_class(block: type[Any],
                     plain: tuple[type[Any], ...]) -> type[StepBlock]:
    """The subclass of a library's block that takes a step size.

    Args:
        block (type): a residual block class.
        plain (tuple[type]): the library's plain blocks, whose forward
            :class:`StepBlock` stands for.

    Raises:
        TypeError: if ``block`` overrides forward (SE, Res2Net, ...), which
            would be lost.
    """
    if block.forward not in [base.forward for base in plain]:
        raise TypeError(
            'backbone.type: expected blocks that inherit their forward from '
            f'{" or ".join(base.__name__ for base in plain)}, got '
            f'{block.__module__}.{block.__name__}, whose forward a step block '
            'would replace; choose a backbone of plain blocks')
    return type(f'Step{block.__name__}', (StepBlock, block),
                dict(
                    __module__=__name__,
                    __doc__=StepBlock.__doc__,
                    __reduce__=reduce_block,
                    _origin=(step_block_class, block, plain)))


def reduce_block(self) -> tuple:
    """For pickle, which finds no class by name that is made at run time."""
    return _new_block, self._origin, self.__dict__


def _new_block(make, *args) -> Any:
    cls = make(*args)
    return cls.__new__(cls)
