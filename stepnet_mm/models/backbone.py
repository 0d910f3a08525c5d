"""Backbones whose residual blocks take a step size."""
from torch import Tensor

from ..steps.base import build_step, default_blocks
from .blocks import step_block_class


class StepOwner:
    """Mixin for a backbone that holds step-size modules in its blocks."""

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
        """The blocks of each stage."""
        raise NotImplementedError

    def _check_frozen_steps(self) -> None:
        for step in self.steps(max(self.frozen_stages, 0)):
            if not step.loaded and step.init_step != 1:
                raise ValueError(
                    f'backbone.frozen_stages={self.frozen_stages} freezes '
                    f'{type(step).__name__} modules that no checkpoint has '
                    'set, so they would scale every residual of those stages '
                    'by their untrained start for good: set frozen_stages=0, '
                    'load a checkpoint that holds them, or start them at 1 '
                    '(StepAdaptor: init_step=1)')


class StepBackbone(StepOwner):
    """Mixin for the ResNet backbones of mmdet and mmpretrain.

    A binding names its library's plain blocks in ``plain_blocks``; all other
    arguments are the library's own.

    Args:
        step (dict | str | list | None): the step-size module of every chosen
            block, or a list with one of these a stage. Defaults to
            StepAdaptor. None leaves the stock network, or the stock stage.
        step_blocks (str | list[list[int]], optional): which blocks take one:
            ``'identity'``, those with an identity shortcut; ``'all'``;
            or the block indices of each stage, from 0. Defaults to what the
            step module names, ``'identity'`` for StepAdaptor, ``'all'`` for
            those that see f alone.
        fused (bool): whether the end of a block with a step runs in one
            piece where that computes the same (:mod:`.fusion`): faster, less
            memory, equal up to rounding (docs/performance.md says where).
            Defaults to True.

    Raises:
        TypeError: if the backbone's blocks are not plain.
        ValueError: on an unknown step type, a list of steps of another length
            than the stages, or a wrong ``step_blocks``.
    """
    plain_blocks = ()

    def __init__(self,
                 *args,
                 step='StepAdaptor',
                 step_blocks=None,
                 fused: bool = True,
                 **kwargs):
        self.step = step
        super().__init__(*args, **kwargs)
        if step is not None:
            self._add_steps(step, step_blocks)
            self._fuse(fused)
            self._freeze_stages()

    def make_res_layer(self, **kwargs):
        if self.step is not None:
            kwargs['block'] = step_block_class(kwargs['block'],
                                               self.plain_blocks)
        return super().make_res_layer(**kwargs)

    def _stages(self) -> list:
        return [getattr(self, name) for name in self.res_layers]

    def _fuse(self, fused: bool) -> None:
        for stage in self._stages():
            for block, following in zip(stage, [*list(stage)[1:], None]):
                block.fused = fused
                step = getattr(following, 'step', None)
                block.keeps_mean = step is not None and (
                    step.needs_identity and step.pools_only)

    def _add_steps(self, step, step_blocks) -> None:
        stages = self._stages()
        cfgs = one_a_stage(step, len(stages))
        if step_blocks not in (None, 'all', 'identity'):
            _check_indices(step_blocks, [len(stage) for stage in stages])
        for i, (stage, cfg) in enumerate(zip(stages, cfgs)):
            chosen = step_blocks or default_blocks(cfg)
            if not isinstance(chosen, str):
                chosen = chosen[i]
            for block in _choose(stage, chosen) if cfg is not None else ():
                block.step = build_step(cfg, block.step_channels)


def one_a_stage(step, num_stages: int) -> list:
    """The ``step`` of each stage, or of each layer of a transformer."""
    if not isinstance(step, (list, tuple)):
        return [step] * num_stages
    if len(step) != num_stages:
        raise ValueError(f'backbone.step: got a list of {len(step)}, expected '
                         f'one entry for each of the {num_stages} stages (in a '
                         'ViT, layers)')
    return step


def _choose(stage, chosen) -> list:
    """The blocks of a stage: 'all', 'identity' or those of some indices."""
    if chosen == 'all':
        return list(stage)
    if chosen == 'identity':
        return [block for block in stage if block.downsample is None]
    return [stage[i] for i in chosen]


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
