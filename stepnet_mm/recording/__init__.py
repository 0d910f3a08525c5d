"""Hooks onto a model's residual blocks that read NSI sample by sample."""
from .blocks import ResidualBlock, find_residual_blocks, list_blocks, unwrap
from .calls import RecordedCalls
from .recorder import TrajectoryRecorder

__all__ = [
    'RecordedCalls', 'ResidualBlock', 'TrajectoryRecorder',
    'find_residual_blocks', 'list_blocks', 'unwrap'
]
