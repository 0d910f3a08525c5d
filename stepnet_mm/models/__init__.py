"""Blocks and backbones, one thin binding module a library."""
from ..optional import import_binding
from .backbone import StepBackbone, StepOwner
from .blocks import StepBlock, step_block_class

import_binding(f'{__name__}.mmdet_binding', 'mmdet')
import_binding(f'{__name__}.mmpretrain_binding', 'mmpretrain')

__all__ = ['StepBackbone', 'StepBlock', 'StepOwner', 'step_block_class']
