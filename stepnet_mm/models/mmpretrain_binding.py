"""The step backbones in mmpretrain's registry.

Each ResNet takes the arguments of its library's class and, beside them,
``step``, ``step_blocks`` and ``fused`` (:class:`StepBackbone`). The networks
of the papers have files of their own.
"""
from mmpretrain.models.backbones.resnet import (
    BasicBlock,
    Bottleneck,
    ResNet,
    ResNetV1c,
    ResNetV1d,
)
from mmpretrain.models.backbones.resnet_cifar import ResNet_CIFAR
from mmpretrain.models.backbones.resnext import ResNeXt
from mmpretrain.registry import MODELS

from .any_network import bind_backbones
from .backbone import StepBackbone
from .cifar_resnet import PreActBasicBlock, PreActBottleneck, StepResNetCIFAR
from .self_attention_net import SelfAttentionNet
from .vit import StepTransformerEncoderLayer, StepVisionTransformer

# Here is where configs and pickles of before have them.
__all__ = [
    'PreActBasicBlock', 'PreActBottleneck', 'SelfAttentionNet', 'StepResNet',
    'StepResNetCIFAR', 'StepResNetV1c', 'StepResNetV1d', 'StepResNeXt',
    'StepResNet_CIFAR', 'StepTransformerEncoderLayer',
    'StepVisionTransformer']


class _StepBackbone(StepBackbone):
    plain_blocks = (BasicBlock, Bottleneck)


@MODELS.register_module()
class StepResNet(_StepBackbone, ResNet):
    """ResNet of mmpretrain with step sizes, R-18/34/50/101/152."""


@MODELS.register_module()
class StepResNetV1c(_StepBackbone, ResNetV1c):
    """ResNetV1c of mmpretrain with step sizes: a deep stem."""


@MODELS.register_module()
class StepResNetV1d(_StepBackbone, ResNetV1d):
    """ResNetV1d of mmpretrain with step sizes: V1c with averaged shortcuts."""


@MODELS.register_module()
class StepResNeXt(_StepBackbone, ResNeXt):
    """ResNeXt of mmpretrain with step sizes, R-50/101/152."""


@MODELS.register_module()
class StepResNet_CIFAR(_StepBackbone, ResNet_CIFAR):
    """ResNet_CIFAR of mmpretrain with step sizes: widths 64-512, 4 stages."""


bind_backbones(MODELS, globals())
