"""The step backbones in mmsegmentation's registry.

Each takes the arguments of its library's class and, beside them, ``step``,
``step_blocks`` and ``fused`` (:class:`StepBackbone`).

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

from .any_network import bind_backbones
from .backbone import StepBackbone


class _StepBackbone(StepBackbone):
    plain_blocks = (BasicBlock, Bottleneck)


@MODELS.register_module()
class StepResNet(_StepBackbone, ResNet):
    """ResNet of mmsegmentation with step sizes, R-18/34/50/101/152."""


@MODELS.register_module()
class StepResNetV1c(_StepBackbone, ResNetV1c):
    """ResNetV1c of mmsegmentation with step sizes: a deep stem."""


@MODELS.register_module()
class StepResNetV1d(_StepBackbone, ResNetV1d):
    """ResNetV1d of mmsegmentation: V1c with averaged shortcuts, with steps."""


@MODELS.register_module()
class StepResNeXt(_StepBackbone, ResNeXt):
    """ResNeXt of mmsegmentation with step sizes, R-50/101/152."""


bind_backbones(MODELS, globals())
