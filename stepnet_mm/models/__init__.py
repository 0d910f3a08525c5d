"""Blocks and backbones, one thin binding module per library.

May import: attention, ops, steps.
"""
from .backbone import StepBackbone, StepOwner
from .blocks import StepBlock, step_block_class

__all__ = ['StepBackbone', 'StepBlock', 'StepOwner', 'step_block_class']
