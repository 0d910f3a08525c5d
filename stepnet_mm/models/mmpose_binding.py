"""mmpretrain's step backbones under mmpose's scope.

mmpose's ResNets are mmpretrain's without stochastic depth: the same
arguments, defaults and names of weights.
"""
from mmpose.registry import MODELS

from .mmpretrain_binding import (
    StepResNet,
    StepResNetV1d,
    StepResNeXt,
)

for backbone in (StepResNet, StepResNetV1d, StepResNeXt):
    MODELS.register_module(module=backbone)
