"""Blocks and backbones, one thin binding module per library.

May import: attention, ops, residual, steps, utils.
"""
from .any_network import AnyStepBackbone, add_steps, step_backbone
from .backbone import StepBackbone, StepOwner
from .blocks import StepBlock, step_block_class

__all__ = ['AnyStepBackbone', 'StepBackbone', 'StepBlock', 'StepOwner',
           'add_steps', 'step_backbone', 'step_block_class']
