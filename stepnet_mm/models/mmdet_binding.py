"""The step backbones in mmdet's registry."""
from collections.abc import Sequence

from mmdet.models.backbones.hrnet import HRNet
from mmdet.models.backbones.resnet import BasicBlock, Bottleneck
from mmdet.registry import MODELS
from torch import nn

from .any_network import bind_backbones
from .backbone import StepBackbone
from .blocks import StepBlock, step_block_class


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


bind_backbones(MODELS, globals(), (BasicBlock, Bottleneck), (
    'ResNet', 'ResNetV1d', 'ResNeXt', 'RegNet'))
