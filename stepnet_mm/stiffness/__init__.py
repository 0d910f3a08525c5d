"""Neural stiffness as pure functions on tensors (needs torch only)."""
from .nsi import neural_stiffness_index, norm_ratio, sample_norm
from .ode import stiffness_aware_index, stiffness_index
from .tns import (stage_summary, stiffness_proportion, stiffness_survival,
                  total_neural_stiffness)

__all__ = [
    'neural_stiffness_index', 'norm_ratio', 'sample_norm',
    'stage_summary', 'stiffness_aware_index', 'stiffness_index',
    'stiffness_proportion', 'stiffness_survival', 'total_neural_stiffness'
]
