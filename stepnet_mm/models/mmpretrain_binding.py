"""The step backbones in mmpretrain's registry.

The networks of the papers have files of their own.
"""
from mmpretrain.models.backbones.resnet import BasicBlock, Bottleneck
from mmpretrain.registry import MODELS

from . import cifar_resnet, self_attention_net, vit  # noqa: F401
from .any_network import bind_backbones

bind_backbones(MODELS, globals(), (BasicBlock, Bottleneck), (
    'ResNet', 'ResNetV1c', 'ResNetV1d', 'ResNeXt', 'ResNet_CIFAR'))
