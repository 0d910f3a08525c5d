"""Logs a quantity of one's own by block while a model trains."""
import torch
from torch import Tensor

from ..recording import QuantityRecorder
from .tns_hook import TNSHook


class BlockQuantityHook(TNSHook):
    """Log a quantity of x_t, f and Δt, and change no bit of the training.

    Subclass it and write :meth:`quantity`. Its mean over samples goes by
    stage to the log, and by block too to every visualizer back end, as
    ``NAME/stage1`` and ``NAME/block/...``. Values that are not finite are
    left out.

    Args:
        interval, by_epoch, probe, blocks: as of :class:`TNSHook`.
        name (str, optional): the first part of scalar names. Defaults to the
            class's name.

    Examples:
        >>> @HOOKS.register_module()
        ... class GrowthHook(BlockQuantityHook):
        ...     def quantity(self, x, f, step_size):
        ...         return (step_size * f).flatten(1).norm(dim=1)
        >>> custom_hooks = [dict(type='GrowthHook', interval=100)]
    """

    def __init__(self, interval: int = 50, by_epoch: bool = False,
                 probe: dict | None = None, blocks: str | None = None,
                 name: str | None = None):
        super().__init__(interval, by_epoch, probe, blocks,
                         name=name or self._owner)

    def quantity(self, x: Tensor, f: Tensor, step_size: Tensor) -> Tensor:
        """The quantity of a block for each sample, without random numbers.

        Args:
            x (Tensor): the block's input x_t, (N, C, H, W), or as the network
                has it, such as tokens (N, L, C); float32 or wider.
            f (Tensor): its residual before the step size, as ``x``; of a
                block that does not show it, output minus input.
            step_size (Tensor): Δt, of a shape that broadcasts to ``x``'s; 1 of
                a block without a gate.

        Returns:
            Tensor: (N,).
        """
        raise NotImplementedError

    def _warn(self, runner, stage) -> None:
        """One measured block per stage is enough here."""

    def _new_recorder(self, model) -> QuantityRecorder:
        return QuantityRecorder(model, self.quantity, self.choice['blocks'])

    def _rows(self, recorder) -> Tensor:
        return recorder.values

    def _summary(self, rows, recorder) -> dict:
        rows = rows.masked_fill(~rows.isfinite(), torch.nan)
        found = {f'stage{stage}': rows[:, recorder.stage == stage].nanmean()
                 for stage in recorder.stage.unique().tolist()}
        found |= {f'block/{name}': column.nanmean()
                  for name, column in zip(recorder.blocks, rows.T)}
        return {key: value.item() for key, value in found.items()
                if value.isfinite()}
