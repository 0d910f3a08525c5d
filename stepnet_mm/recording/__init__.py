"""Hooks onto a model that read its residual blocks and attention layers.

May import: attention, ops, steps, stiffness, utils.
"""
from ..utils.model_wrappers import unwrap
from .attention import find_attention_layers, record_attention
from .blocks import ResidualBlock, find_residual_blocks, list_blocks
from .calls import RecordedCalls
from .recorder import TrajectoryRecorder

__all__ = [
    'RecordedCalls', 'ResidualBlock', 'TrajectoryRecorder',
    'find_attention_layers', 'find_residual_blocks', 'list_blocks',
    'record_attention', 'unwrap'
]
