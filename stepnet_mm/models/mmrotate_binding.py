"""mmdet's step backbones under mmrotate's scope, as it uses mmdet's own."""
from mmrotate.registry import MODELS

from .mmdet_binding import (
    StepHRNet,
    StepRegNet,
    StepResNet,
    StepResNetV1d,
    StepResNeXt,
)

for backbone in (StepResNet, StepResNetV1d, StepResNeXt, StepRegNet,
                 StepHRNet):
    MODELS.register_module(module=backbone)
