"""mmpretrain's step backbones under mmpose's scope.

mmpose's ResNets are mmpretrain's without stochastic depth: the same
arguments, defaults and names of weights.
"""
from mmpose.registry import MODELS

from .mmpretrain_binding import StepResNeXt, StepResNet, StepResNetV1d

for cls in (StepResNeXt, StepResNet, StepResNetV1d):
    MODELS.register_module(module=cls)
