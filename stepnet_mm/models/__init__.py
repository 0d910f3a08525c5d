"""Blocks and backbones, one thin binding module a library."""
from ..optional import import_binding
from .backbone import StepBackbone
from .blocks import StepBlock, step_block_class

import_binding(f'{__name__}.mmdet_resnet', 'mmdet')
import_binding(f'{__name__}.mmpretrain_resnet', 'mmpretrain')

__all__ = ['StepBackbone', 'StepBlock', 'step_block_class']
