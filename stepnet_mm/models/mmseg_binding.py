"""The step backbones in mmsegmentation's registry, with its arguments.

Its networks dilate the first block of a stage otherwise than mmdet's
(``contract_dilation``, ``multi_grid``), with the same names of weights.
"""
from mmseg.models.backbones.resnet import (
    BasicBlock,
    Bottleneck,
    ResNet,
    ResNetV1c,
    ResNetV1d,
)
from mmseg.models.backbones.resnext import ResNeXt
from mmseg.registry import MODELS

from .backbone import StepBackbone


class _StepBackbone(StepBackbone):
    plain_blocks = (BasicBlock, Bottleneck)


@MODELS.register_module()
class StepResNet(_StepBackbone, ResNet):
    """ResNet of mmsegmentation with step sizes, R-18/34/50/101/152.

    Takes the arguments of :class:`mmseg.models.ResNet` and, beside them,
    ``step``, ``step_blocks`` and ``fused`` (:class:`StepBackbone`).
    """


@MODELS.register_module()
class StepResNetV1c(_StepBackbone, ResNetV1c):
    """ResNetV1c of mmsegmentation with step sizes: a deep stem.

    Takes the arguments of :class:`mmseg.models.ResNetV1c` and, beside them,
    ``step``, ``step_blocks`` and ``fused`` (:class:`StepBackbone`).
    """


@MODELS.register_module()
class StepResNetV1d(_StepBackbone, ResNetV1d):
    """ResNetV1d of mmsegmentation: V1c with averaged shortcuts, with steps.

    Takes the arguments of :class:`mmseg.models.ResNetV1d` and, beside them,
    ``step``, ``step_blocks`` and ``fused`` (:class:`StepBackbone`).
    """


@MODELS.register_module()
class StepResNeXt(_StepBackbone, ResNeXt):
    """ResNeXt of mmsegmentation with step sizes, R-50/101/152.

    Takes the arguments of :class:`mmseg.models.ResNeXt` and, beside them,
    ``step``, ``step_blocks`` and ``fused`` (:class:`StepBackbone`).
    """
