"""The step backbones in mmsegmentation's registry.

Its networks dilate the first block of a stage otherwise than mmdet's
(``contract_dilation``, ``multi_grid``), with the same names of weights.
"""
from mmseg.models.backbones.resnet import BasicBlock, Bottleneck
from mmseg.registry import MODELS

from .any_network import bind_backbones

bind_backbones(MODELS, globals(), (BasicBlock, Bottleneck), (
    'ResNet', 'ResNetV1c', 'ResNetV1d', 'ResNeXt'))
