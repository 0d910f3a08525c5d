"""torch hooks that read a model's residual blocks and attention layers.

Of this rank: hooks/ gathers over ranks.

May import: attention, residual, steps, stiffness, utils.
"""
from .attention import find_attention_layers, record_attention
from .quantity_recorder import QuantityRecorder
from .residual_blocks import ResidualBlock, find_residual_blocks, list_blocks
from .trajectory_recorder import TrajectoryRecorder

__all__ = [
    'QuantityRecorder', 'ResidualBlock', 'TrajectoryRecorder',
    'find_attention_layers', 'find_residual_blocks', 'list_blocks',
    'record_attention']
