"""Records a quantity of one's own, of x_t, f and Δt, by block."""
from collections.abc import Callable
from operator import itemgetter

import torch
from torch import Tensor, nn

from ..steps.pooling import global_linear
from ..stiffness.nsi import widened
from .trajectory_recorder import TrajectoryRecorder, _BlockHooks


class QuantityRecorder(TrajectoryRecorder):
    """Reads a function of every block's x_t, f and Δt while a model runs.

    Args:
        model (nn.Module): as of :class:`TrajectoryRecorder`.
        quantity (Callable): as ``BlockQuantityHook.quantity``.
        blocks (str, optional): a regular expression for their names.
    """

    def __init__(self, model: nn.Module, quantity: Callable,
                 blocks: str | None = None):
        super().__init__(model, blocks)
        self._block_hooks = [_MapHooks(hooks.block, quantity)
                             for hooks in self._block_hooks]

    @property
    def values(self) -> Tensor:
        """The quantity, shape (N, L), on the CPU."""
        return self._table(itemgetter('x')).cpu()


class _MapHooks(_BlockHooks):
    """Keeps copies of a block's maps until its end."""

    def __init__(self, block, quantity: Callable):
        super().__init__(block, update=False)
        self.quantity = quantity

    def _read(self, x) -> Tensor:
        if not isinstance(x, Tensor):  # a fused block's parts of f
            x = global_linear(x, lambda values: values)
        return widened(x.detach().clone())

    def _delta(self, module, args, output):
        if self.current is not None:
            self.current['step'] = widened(output.detach())

    def _row(self, x, f, step=None) -> dict[str, Tensor]:
        step = x.new_ones((1, ) * x.ndim) if step is None else step
        if f.shape != x.shape:  # the step's map of tokens, or of (N, H, W, C)
            f = _channels_last(f, x)
        if step.ndim != x.ndim or step.size(1) not in (1, x.size(1)):
            step = _channels_last(step, x)
        value = torch.as_tensor(self.quantity(x, f, step))
        if value.shape != x.shape[:1]:
            raise ValueError(
                f'quantity: expected a number for each sample, shape '
                f'({len(x)},), got {tuple(value.shape)}; reduce the others')
        return dict(x=value.detach())


def _channels_last(x: Tensor, like: Tensor) -> Tensor:
    return (x[..., 0] if like.ndim == 3 else x).movedim(1, -1)
