"""Hooks onto a model's residual blocks that read NSI sample by sample."""
from .blocks import ResidualBlock, find_residual_blocks, list_blocks, unwrap
from .recorder import TrajectoryRecorder

__all__ = [
    'ResidualBlock', 'TrajectoryRecorder', 'find_residual_blocks',
    'list_blocks', 'unwrap'
]
