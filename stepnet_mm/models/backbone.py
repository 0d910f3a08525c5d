"""StepBackbone, of ResNets, and what all share: step_blocks, frozen steps."""
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mmengine.logging import print_log
from torch import Tensor, nn

from ..steps.base import StepSize, build_step, default_blocks
from ..steps.layers import named_norm
from .blocks import StepBlock, step_block_class

if TYPE_CHECKING:
    from mmengine.model import BaseModule
else:
    BaseModule = object


class StepOwner(BaseModule):
    """Mixin for a backbone that holds step-size modules in its blocks.

    Where they start is decided while weights are loaded
    (:class:`~.pretrained_start.PretrainedStart`), and logged when training
    begins.

    Attributes:
        step (dict | str | list | None): the config of the steps, or a list
            with one of these per stage.
    """
    step: dict | str | list | None
    _logged_starts = ''

    def init_weights(self) -> None:
        """Initialise as the library does, and the steps that it did not load.

        Weights that were loaded before are drawn anew, as in mmengine.
        """
        if self.is_init:  # then the library changes nothing, nor do we
            return super().init_weights()
        for step in self.steps():
            step.forget_loaded()
        super().init_weights()
        for step in self.steps():
            if not step.loaded:
                step.init_weights()

    def train(self, mode: bool = True) -> 'StepOwner':
        """Set the mode as torch does; log where the steps start."""
        super().train(mode)
        if mode:  # by now all weights are loaded
            self._log_starts()
        return self

    def forward(self, x: Tensor) -> tuple:
        """Images (N, 3, H, W) -> the library's tuple of features.

        Raises:
            ValueError: in training, if a frozen stage holds steps that do
                not start at 1 and that no checkpoint has set.
        """
        self.check_frozen_steps()
        return super().forward(x)

    def named_modules(self, memo=None, prefix: str = '', *args, **kwargs):
        """The modules as torch orders them, with a prefix the steps first.

        Tools list the backbone alone, with a prefix, and take the last norm
        for Grad-CAM's layer. Without one the order is that of parameters().
        """
        found = super().named_modules(memo, prefix, *args, **kwargs)
        if not prefix or memo is not None:
            return found
        steps = {m for step in self.steps() for m in step.modules()}
        return iter(sorted(found, key=lambda item: item[1] not in steps))

    def steps(self, num_stages: int | None = None) -> list[StepSize]:
        """The step-size modules of the first ``num_stages`` stages."""
        found = [getattr(block, 'step', None)
                 for blocks in self._stages()[:num_stages] for block in blocks]
        return [step for step in found if step is not None]

    def _stages(self) -> Sequence[Sequence[nn.Module]]:
        """The blocks of each stage."""
        raise NotImplementedError

    def _frozen_steps(self) -> list[StepSize]:
        return self.steps(max(self.frozen_stages, 0))

    def _log_starts(self) -> None:
        starts = Counter(
            (type(step).__name__, step.describe_start())
            for step in self.steps())
        text = '; '.join(f'{count} {name} start {start}'
                         for (name, start), count in starts.items())
        if text not in ('', self._logged_starts):
            print_log(f'{type(self).__name__}: {text}', logger='current')
        self._logged_starts = text

    def check_frozen_steps(self) -> None:
        """Raise the ValueError of :meth:`forward`."""
        frozen = getattr(self, 'frozen_stages', None)
        for step in self._frozen_steps() if self.training else ():
            if not step.loaded and step.init_step != 1:
                raise ValueError(
                    'backbone.frozen_stages: expected steps in frozen stages '
                    'that start at 1 or that a checkpoint has set, got '
                    f'untrained {type(step).__name__} modules with '
                    f'frozen_stages={frozen}, which would scale '
                    'their residuals for good; set frozen_stages=0, load '
                    'them, or start them at 1 (StepAdaptor: init_step=1)')


class StepBackbone(StepOwner):
    """Mixin for the ResNet backbones of the libraries.

    A binding names its library's plain blocks in ``plain_blocks``; all other
    arguments are the library's own. With mmdet's ``plugins`` both apply:
    a plugin is part of f, which the step then scales.

    ``frozen_stages`` freezes the steps of these stages too: those that start
    at 1 stay there, and the stages remain a plain network's. Others that no
    checkpoint has set are an error when training begins.

    Args:
        step (dict | str | list | None): the step-size module of every chosen
            block, or a list with one of these per stage. Defaults to
            StepAdaptor, which starts at 1 with the weights of a plain
            network and as published from scratch. None leaves the stock
            network, or the stock stage.
        step_blocks (str | list[list[int]], optional): which blocks take one:
            ``'identity'``, the blocks with an identity shortcut; ``'all'``;
            or the block indices of each stage, from 0. Defaults to the step
            module's choice, ``'identity'`` for StepAdaptor, ``'all'`` for
            modules that see f alone.
        fused (bool): whether the end of a block with a step is fused where
            the modules allow it (:mod:`.fusion`): faster, less memory, equal
            up to rounding. Defaults to True.

    Raises:
        TypeError: by :func:`.step_block_class`, if the backbone's blocks are
            not plain.
        ValueError: on an unknown step type, a list of steps of another length
            than the stages, or a wrong ``step_blocks``.
    """
    plain_blocks: tuple[type[nn.Module], ...] = ()

    def __init__(self,
                 *args,
                 step: dict | str | list | None = 'StepAdaptor',
                 step_blocks: str | list[list[int]] | None = None,
                 fused: bool = True,
                 **kwargs):
        self.step = step
        with named_norm('backbone.norm_cfg', kwargs.get('norm_cfg')):
            super().__init__(*args, **kwargs)
        if step is not None:
            self._add_steps(step, step_blocks)
            self._set_fused(fused)
            if self.frozen_stages >= 0:
                self._freeze_stages()

    def make_res_layer(self, block: Any, **kwargs) -> nn.Module:
        """A stage of the library's, with blocks that can take a step.

        Raises:
            TypeError: by :func:`.step_block_class`, if ``block``, the
                library's class, is not plain.
        """
        # A StepBlock, as in pre-activation, can take a step already.
        if self.step is None or issubclass(block, StepBlock):
            return super().make_res_layer(block=block, **kwargs)
        stage = super().make_res_layer(
            block=step_block_class(block, self.plain_blocks), **kwargs)
        # The library keeps the class; pickle finds no step block by name.
        stage.block = block
        return stage

    def _stages(self) -> list[Sequence[StepBlock]]:
        return [getattr(self, name) for name in self.res_layers]

    def _set_fused(self, fused: bool) -> None:
        for stage in self._stages():
            blocks: list[Any] = [*stage]
            for block in blocks:
                block.fused = fused

    def _add_steps(self, step: dict | str | list,
                   step_blocks: str | list[list[int]] | None) -> None:
        stages = self._stages()
        sizes = [len(stage) for stage in stages]
        if step_blocks not in (None, 'all', 'identity'):
            check_indices(step_blocks, sizes)
        cfgs = one_per_stage(step, len(stages))
        for i, (stage, cfg) in enumerate(zip(stages, cfgs)):
            chosen = step_blocks or default_blocks(cfg)
            of_stage = chosen if isinstance(chosen, str) else chosen[i]
            for block in _choose(stage, of_stage) if cfg is not None else ():
                block.step = build_step(cfg, block.step_channels)
        if not self.steps() and any(cfg is not None for cfg in cfgs):
            raise ValueError(
                'backbone.step_blocks: expected some blocks of stages of '
                f'{sizes}, got {step_blocks!r}, which chooses none '
                "('identity' leaves the first of most stages out); choose "
                "some, or 'all', or set step=None for the stock network")


def one_per_stage(step: dict | str | list | None, num_stages: int) -> list:
    """The ``step`` of each stage, or of each layer of a transformer.

    Raises:
        ValueError: if ``step`` is a list of another length.
    """
    if not isinstance(step, (list, tuple)):
        return [step] * num_stages
    if len(step) != num_stages:
        raise ValueError(
            f'backbone.step: expected one entry for each of the {num_stages} '
            f'stages (in a ViT, layers), got a list of {len(step)}; give one '
            'module for all, or None where a stage takes none')
    return list(step)


def _choose(stage: Sequence[StepBlock],
            chosen: str | list[int]) -> list[StepBlock]:
    """The blocks of a stage: 'all', 'identity' or a list of indices."""
    if chosen == 'all':
        return list(stage)
    if isinstance(chosen, str):  # 'identity'
        return [block for block in stage if block.downsample is None]
    return [stage[i] for i in chosen]


def check_indices(step_blocks, sizes: list[int]) -> None:
    """Raise a ValueError unless there are lists of indices of the blocks."""
    rows = step_blocks if isinstance(step_blocks, (list, tuple)) else []
    if len(rows) != len(sizes) or not any(rows) or not all(
            isinstance(chosen, (list, tuple)) and {*chosen} <= {*range(size)}
            for chosen, size in zip(rows, sizes)):
        raise ValueError(
            "backbone.step_blocks: expected 'identity', 'all' or "
            f'{len(sizes)} lists of block indices, one per stage and not all '
            f'empty, for stages of {sizes} blocks, got {step_blocks!r}; count '
            'from 0, or set step=None for the stock network')
