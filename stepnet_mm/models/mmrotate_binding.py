"""mmdet's step backbones under mmrotate's scope, as it uses mmdet's own."""
from mmrotate.registry import MODELS

from .mmdet_binding import (
    StepHRNet,
    StepRegNet,
    StepResNeXt,
    StepResNet,
    StepResNetV1d,
)

for cls in (StepHRNet, StepRegNet, StepResNeXt, StepResNet, StepResNetV1d):
    MODELS.register_module(module=cls)
