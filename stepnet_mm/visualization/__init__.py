"""Saved records -> figures; a model is never seen here.

May import: analysis, attention, stiffness, studies.
"""
from .attention_figures import (
    attention_figures,
    attention_map_figure,
    attention_path_figure,
    attention_range_figure,
)
from .canvas import as_image, check_records, labels, save_figure
from .correlation import plot_correlation
from .report import render_report
from .step_figures import has_steps, step_figure
from .stiffness_figures import (
    depth_figure,
    proportion_figure,
    seeds_figure,
    survival_figure,
)
from .study_figures import study_figures, write_figures
from .training_curve import (
    curve_figure,
    read_stiffness_curve,
    read_stiffness_curves,
)

__all__ = [
    'as_image', 'attention_figures', 'attention_map_figure',
    'attention_path_figure', 'attention_range_figure', 'check_records',
    'curve_figure', 'depth_figure', 'has_steps', 'labels', 'plot_correlation',
    'proportion_figure', 'read_stiffness_curve', 'read_stiffness_curves',
    'render_report', 'save_figure', 'seeds_figure', 'step_figure',
    'study_figures', 'survival_figure', 'write_figures'
]
