"""Residual blocks with a step size, for the ResNets of mmdet and mmpretrain.

The libraries' blocks share ``conv{i}``, ``norm{i}``, ``relu``,
``downsample`` and ``with_cp``. Their forward ends in an in-place
``out += identity`` inside a closure, so nothing can be slipped in between:
this mixin brings a forward of its own.
"""
import functools

import torch.utils.checkpoint as cp
from torch import Tensor


class StepBlock:
    """Mixin for BasicBlock and Bottleneck: Eq. 12 where ``step`` is set.

    Attributes:
        step (StepSize | None): the step-size module; None leaves Eq. 1.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.step = None

    def __reduce__(self):
        # The class is made at run time, so pickle cannot find it by name.
        return _new_step_block, self._origin, self.__dict__

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, C', H', W'), activation included."""
        if self.with_cp and x.requires_grad:
            out = cp.checkpoint(self._advance, x, use_reentrant=False)
        else:
            out = self._advance(x)
        return self.relu(out)

    def _advance(self, x: Tensor) -> Tensor:
        residual = self.residual(x)
        identity = x if self.downsample is None else self.downsample(x)
        if self.step is not None:
            residual = self.step(identity, residual)
        if hasattr(self, 'drop_path'):
            residual = self.drop_path(residual)
        return identity + residual

    def residual(self, x: Tensor) -> Tensor:
        """f(x_t), before any step size: (N, C, H, W) -> (N, C', H', W')."""
        for i in range(1, self.num_convs + 1):
            x = getattr(self, f'norm{i}')(getattr(self, f'conv{i}')(x))
            if i < self.num_convs:
                x = self.relu(x)
            if getattr(self, 'with_plugins', False):
                x = self.forward_plugin(
                    x, getattr(self, f'after_conv{i}_plugin_names'))
        return x

    @property
    def num_convs(self) -> int:
        """2 in a BasicBlock, 3 in a Bottleneck."""
        return 3 if 'conv3' in self._modules else 2

    @property
    def step_channels(self) -> int:
        """Channels of f."""
        return self._modules[f'conv{self.num_convs}'].out_channels


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
