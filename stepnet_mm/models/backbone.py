"""A ResNet backbone whose residual blocks take a step size."""
from torch import Tensor

from ..steps.base import build_step, default_blocks
from .blocks import step_block_class


class StepBackbone:
    """Mixin for the ResNet backbones of mmdet and mmpretrain.

    A binding names its library's plain blocks in ``plain_blocks``; all other
    arguments are the library's own.

    Args:
        step (dict | str | None): the step-size module of every chosen block.
            Defaults to StepAdaptor. None leaves the stock network.
        step_blocks (str | list[list[int]], optional): which blocks take one:
            ``'identity'``, those with an identity shortcut; ``'all'``;
            or the block indices of each stage, from 0. Defaults to what the
            step module names, ``'identity'`` for StepAdaptor, ``'all'`` for
            those that see f alone.

    Raises:
        TypeError: if the backbone's blocks are not plain.
        ValueError: on an unknown step type or a wrong ``step_blocks``.
    """
    plain_blocks = ()

    def __init__(self, *args, step='StepAdaptor', step_blocks=None, **kwargs):
        self.step = step
        super().__init__(*args, **kwargs)
        if step is not None:
            if step_blocks is None:
                step_blocks = default_blocks(step)
            for block in self._choose(step_blocks):
                block.step = build_step(step, block.step_channels)
            self._freeze_stages()

    def make_res_layer(self, **kwargs):
        if self.step is not None:
            kwargs['block'] = step_block_class(kwargs['block'],
                                               self.plain_blocks)
        return super().make_res_layer(**kwargs)

    def init_weights(self) -> None:
        """The library's start, then the steps' own, unless loaded."""
        again = self.is_init  # then the library changes nothing, nor do we
        super().init_weights()
        for step in self.steps():
            if not (again or step.loaded):
                step.init_weights()

    def forward(self, x: Tensor) -> tuple:
        if self.training:
            self._check_frozen_steps()
        return super().forward(x)

    def steps(self, num_stages: int = None) -> list:
        """The step-size modules of the first ``num_stages`` stages."""
        return [
            block.step for stage in self._stages()[:num_stages]
            for block in stage
            if getattr(block, 'step', None) is not None
        ]

    def _stages(self) -> list:
        return [getattr(self, name) for name in self.res_layers]

    def _choose(self, step_blocks) -> list:
        stages = self._stages()
        if step_blocks == 'all':
            return [block for stage in stages for block in stage]
        if step_blocks == 'identity':
            return [
                block for stage in stages for block in stage
                if block.downsample is None
            ]
        _check_indices(step_blocks, [len(stage) for stage in stages])
        return [
            stage[i] for stage, chosen in zip(stages, step_blocks)
            for i in chosen
        ]

    def _check_frozen_steps(self) -> None:
        for step in self.steps(max(self.frozen_stages, 0)):
            if not step.loaded and step.init_step != 1:
                raise ValueError(
                    f'backbone.frozen_stages={self.frozen_stages} freezes '
                    f'{type(step).__name__} modules that no checkpoint has '
                    'set, so they would scale every residual of those stages '
                    f'by their start ({step.init_step}) for good: set '
                    'frozen_stages=0, load a checkpoint that holds them, or '
                    'start them at 1 (StepAdaptor: init_step=1)')


def _check_indices(step_blocks, sizes: list) -> None:
    expected = ("backbone.step_blocks: expected 'identity', 'all' or "
                f'{len(sizes)} lists of block indices, one a stage, for '
                f'stages of {sizes} blocks')
    if not isinstance(step_blocks, (list, tuple)) or not all(
            isinstance(stage, (list, tuple)) for stage in step_blocks):
        raise ValueError(f'{expected}; got {step_blocks!r}')
    if len(step_blocks) != len(sizes):
        raise ValueError(f'{expected}; got {len(step_blocks)} lists')
    for i, (chosen, size) in enumerate(zip(step_blocks, sizes), 1):
        valid = all(type(k) is int and 0 <= k < size for k in chosen)
        if not valid or len(set(chosen)) < len(chosen):
            raise ValueError(f'{expected}; got {list(chosen)} for stage {i}')
