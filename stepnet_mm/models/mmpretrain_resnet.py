"""The step backbones in mmpretrain's registry, with its arguments."""
from mmpretrain.models.backbones.resnet import BasicBlock, Bottleneck, ResNet
from mmpretrain.models.backbones.resnext import ResNeXt
from mmpretrain.registry import MODELS

from .backbone import StepBackbone


class _StepBackbone(StepBackbone):
    plain_blocks = (BasicBlock, Bottleneck)


@MODELS.register_module()
class StepResNet(_StepBackbone, ResNet):
    """ResNet of mmpretrain with step sizes, R-18/34/50/101/152.

    Takes the arguments of :class:`mmpretrain.models.ResNet` and, beside
    them, ``step`` and ``step_blocks`` (:class:`StepBackbone`).
    """


@MODELS.register_module()
class StepResNeXt(_StepBackbone, ResNeXt):
    """ResNeXt of mmpretrain with step sizes, R-50/101/152.

    Takes the arguments of :class:`mmpretrain.models.ResNeXt` and, beside
    them, ``step`` and ``step_blocks`` (:class:`StepBackbone`).
    """
