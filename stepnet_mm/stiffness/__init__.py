"""Neural stiffness as pure functions on tensors, and records of it.

Needs torch and numpy only.

May import: no other folder.
"""
from .nsi import (
    neural_stiffness_index,
    norm_ratio,
    sample_norm,
    stiffness_aware_index,
    stiffness_index,
)
from .stiffness_record import (
    DEFINITIONS,
    RecordHeader,
    StiffnessRecord,
    append_rows,
    begin_record,
    labels,
    read_stiffness_record,
)
from .summary import DEGREE, summarize_stiffness, summarize_tns
from .tns import (
    block_stiffness,
    stage_summary,
    stiff_blocks,
    stiffness_proportion,
    stiffness_survival,
    total_neural_stiffness,
)

__all__ = [
    'DEFINITIONS', 'DEGREE', 'RecordHeader', 'StiffnessRecord', 'append_rows',
    'begin_record', 'block_stiffness', 'labels', 'neural_stiffness_index',
    'norm_ratio', 'read_stiffness_record', 'sample_norm', 'stage_summary',
    'stiff_blocks', 'stiffness_aware_index', 'stiffness_index',
    'stiffness_proportion', 'stiffness_survival', 'summarize_stiffness',
    'summarize_tns', 'total_neural_stiffness']
