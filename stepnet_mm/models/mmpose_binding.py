"""mmpretrain's step backbones under mmpose's scope.

mmpose's ResNets are mmpretrain's without stochastic depth: the same
arguments, defaults and names of weights.
"""
from mmpose.registry import MODELS

from . import mmpretrain_binding

for name in ('StepResNet', 'StepResNetV1d', 'StepResNeXt'):
    MODELS.register_module(module=getattr(mmpretrain_binding, name))
