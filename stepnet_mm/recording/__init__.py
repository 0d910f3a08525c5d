"""Hooks that read the residual blocks and attention layers of a model.

May import: attention, residual, steps, stiffness, utils.
"""
from .attention import find_attention_layers, record_attention
from .blocks import ResidualBlock, find_residual_blocks, list_blocks
from .quantity_recorder import QuantityRecorder
from .step_size_ablation import (
    StepAblation,
    StepSizeMoments,
    ablate_step_sizes,
    fixed_step_sizes,
    record_step_sizes,
)
from .trajectory_recorder import RecordedCalls, TrajectoryRecorder

__all__ = [
    'QuantityRecorder', 'RecordedCalls', 'ResidualBlock', 'StepAblation',
    'StepSizeMoments', 'TrajectoryRecorder', 'ablate_step_sizes',
    'find_attention_layers', 'find_residual_blocks', 'fixed_step_sizes',
    'list_blocks', 'record_attention', 'record_step_sizes']
