"""mmdet's step backbones under mmrotate's scope, as it uses mmdet's own."""
from mmrotate.registry import MODELS

from . import mmdet_binding

for name in ('StepResNet', 'StepResNetV1d', 'StepResNeXt', 'StepRegNet',
             'StepHRNet'):
    MODELS.register_module(module=getattr(mmdet_binding, name))
