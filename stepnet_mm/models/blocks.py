"""Residual blocks with a step size, for the ResNets of mmdet and mmpretrain.

The libraries' blocks share ``conv{i}``, ``norm{i}``, ``relu``,
``downsample`` and ``with_cp``. Their forward ends in an in-place
``out += identity`` inside a closure, so nothing can be slipped in between:
this mixin brings a forward of its own.
"""
import functools

import torch.utils.checkpoint as cp
from torch import Tensor, nn

from ..ops import keep_mean
from .fusion import can_fuse, finish, fits
from .pretrained_start import PretrainedStart


class StepBlock(PretrainedStart):
    """Mixin for BasicBlock and Bottleneck: Eq. 12 where ``step`` is set.

    Attributes:
        step (StepSize | None): the step-size module; None leaves Eq. 1.
        fused (bool): whether the block's end may run in one piece
            (:mod:`.fusion`).
        keeps_mean (bool): whether the next block's end needs the mean over
            space of this block's output.
    """
    fused = True
    keeps_mean = False

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.step = None

    def __reduce__(self):
        # The class is made at run time, so pickle cannot find it by name.
        return _new_step_block, self._origin, self.__dict__

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, C', H', W'), activation included."""
        # Once, so that a checkpointed block runs again as it ran before.
        fused = can_fuse(self)
        if self.with_cp and x.requires_grad:
            return cp.checkpoint(self._advance, x, fused, use_reentrant=False)
        return self._advance(x, fused)

    def _advance(self, x: Tensor, fused: bool) -> Tensor:
        z = self._convolve(x)
        if self.downsample is not None:
            x = self.downsample(x)
        if fused and self.step is not None and fits(self, z, x):
            y = finish(self, z, x)
        else:
            y = self._add(x, self._complete(z))
        # A hook may change y so that nobody can tell.
        if fused and self.keeps_mean and not self._forward_hooks:
            keep_mean(y)
        return y

    def _add(self, x: Tensor, residual: Tensor) -> Tensor:
        stepped = self.step is not None
        if stepped:
            residual = self.step(x, residual)
        if hasattr(self, 'drop_path'):
            residual = self.drop_path(residual)
        # In place, as the libraries have it, where no step can have kept it.
        return self.relu(residual + x if stepped else residual.add_(x))

    def residual(self, x: Tensor) -> Tensor:
        """f(x_t), before any step size: (N, C, H, W) -> (N, C', H', W')."""
        return self._complete(self._convolve(x))

    def _convolve(self, x: Tensor) -> Tensor:
        """Up to the last convolution's output."""
        for i in range(1, self.num_convs):
            x = getattr(self, f'norm{i}')(getattr(self, f'conv{i}')(x))
            x = self._plug_in(i, self.relu(x))
        return self.last_conv(x)

    def _complete(self, z: Tensor) -> Tensor:
        """From the last convolution's output to f."""
        return self._plug_in(self.num_convs, self.last_norm(z))

    def _plug_in(self, i: int, x: Tensor) -> Tensor:
        names = self._plugins(i)
        return self.forward_plugin(x, names) if names else x

    def _plugins(self, i: int) -> list:
        if not getattr(self, 'with_plugins', False):
            return []
        return getattr(self, f'after_conv{i}_plugin_names')

    @property
    def plugins_at_end(self) -> list:
        """Names of the plugins behind the last norm."""
        return self._plugins(self.num_convs)

    @property
    def last_conv(self) -> nn.Module:
        """The last convolution, whose output is z."""
        return getattr(self, f'conv{self.num_convs}')

    @property
    def last_norm(self) -> nn.Module:
        """The norm layer behind the last convolution."""
        return getattr(self, f'norm{self.num_convs}')

    @property
    def num_convs(self) -> int:
        """2 in a BasicBlock, 3 in a Bottleneck."""
        return 3 if 'conv3' in self._modules else 2

    @property
    def step_channels(self) -> int:
        """Channels of f."""
        return self.last_conv.out_channels


@functools.lru_cache(None)
def step_block_class(block: type, plain: tuple) -> type:
    """The subclass of a library's block that takes a step size.

    Args:
        block (type): a residual block class.
        plain (tuple[type]): the library's plain blocks, whose forward
            :class:`StepBlock` stands for.

    Raises:
        TypeError: if ``block`` has a forward of its own (SE, Res2Net, ...),
            which would be lost.
    """
    if block.forward not in [base.forward for base in plain]:
        raise TypeError(
            f'backbone.type: the block {block.__module__}.{block.__name__} '
            'has a forward of its own, which a step block would replace; '
            f'expected one that inherits it from '
            f'{" or ".join(base.__name__ for base in plain)}')
    return type(f'Step{block.__name__}', (StepBlock, block),
                dict(
                    __module__=__name__,
                    __doc__=StepBlock.__doc__,
                    _origin=(block, plain)))


def _new_step_block(block: type, plain: tuple) -> StepBlock:
    cls = step_block_class(block, plain)
    return cls.__new__(cls)
