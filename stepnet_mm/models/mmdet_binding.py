"""The step backbones in mmdet's registry.

Each takes the arguments of its library's class and, beside them, ``step``,
``step_blocks`` and ``fused`` (:class:`StepBackbone`).
"""
from collections.abc import Sequence

from mmdet.models.backbones.hrnet import HRNet
from mmdet.models.backbones.regnet import RegNet
from mmdet.models.backbones.resnet import (
    BasicBlock,
    Bottleneck,
    ResNet,
    ResNetV1d,
)
from mmdet.models.backbones.resnext import ResNeXt
from mmdet.registry import MODELS
from torch import nn

from .any_network import bind_backbones
from .backbone import StepBackbone
from .blocks import StepBlock, step_block_class

PLUGIN_KEYS = {'cfg', 'position', 'stages'}


class _StepBackbone(StepBackbone):
    """The common part of mmdet's ResNets.

    Args:
        plugins (list[dict], optional): mmdet's own, of ``cfg``, ``position``
            and ``stages``; other keys are an error.
    """
    plain_blocks = (BasicBlock, Bottleneck)

    def __init__(self, *args, plugins=None, **kwargs):
        # mmdet ignores unknown keys, so a misspelt `stages` would silently
        # put the plugin everywhere.
        for plugin in plugins or ():
            unknown = set(plugin) - PLUGIN_KEYS
            if unknown or not {'cfg', 'position'} <= set(plugin):
                raise ValueError(
                    'backbone.plugins: expected dicts of cfg, position and '
                    f'(optional) stages, got the keys {sorted(plugin)}; '
                    'correct their names')
        super().__init__(*args, plugins=plugins, **kwargs)


@MODELS.register_module()
class StepResNet(_StepBackbone, ResNet):
    """ResNet of mmdet with step sizes, R-18/34/50/101/152."""


@MODELS.register_module()
class StepResNetV1d(_StepBackbone, ResNetV1d):
    """ResNetV1d of mmdet with step sizes: a deep stem, averaged shortcuts."""


@MODELS.register_module()
class StepResNeXt(_StepBackbone, ResNeXt):
    """ResNeXt of mmdet with step sizes, R-50/101/152."""


@MODELS.register_module()
class StepRegNet(_StepBackbone, RegNet):
    """RegNet of mmdet with step sizes."""


@MODELS.register_module()
class StepHRNet(StepBackbone, HRNet):
    """HRNet of mmdet with step sizes.

    The blocks of a stage: module by module, and in each branch by branch.
    """
    plain_blocks = (BasicBlock, Bottleneck)
    frozen_stages = -1  # it has no such argument

    @property
    def blocks_dict(self) -> dict[str, type[nn.Module]]:
        """Its blocks, which can take a step unless none is wanted."""
        blocks = super().blocks_dict
        if self.step is None:
            return blocks
        return {name: step_block_class(block, self.plain_blocks)
                for name, block in blocks.items()}

    def _stages(self) -> list[Sequence[StepBlock]]:
        stages = self.stage2, self.stage3, self.stage4
        return [self.layer1, *(
            [block for module in stage for branch in module.branches
             for block in branch] for stage in stages)]


bind_backbones(MODELS, globals())
