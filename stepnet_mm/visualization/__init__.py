"""Saved records -> figures; a model is never seen here.

May import: analysis, attention, stiffness, utils.
"""
from ..stiffness import labels
from . import style
from .attention_figures import (
    attention_figures,
    attention_map_figure,
    attention_path_figure,
    attention_range_figure,
)
from .attention_page import has_query_maps, render_attention_page
from .canvas import as_image, check_records, file_name, save_figure
from .correlation import plot_correlation
from .property_figure import property_figure
from .report import render_report
from .step_figures import has_steps, step_correlations, step_figure
from .stiffness_figures import (
    depth_figure,
    proportion_figure,
    seeds_figure,
    survival_figure,
)
from .tns_figure import tns_figure
from .training_curve import (
    curve_figure,
    read_stiffness_curve,
    read_stiffness_curves,
)

__all__ = [
    'as_image', 'attention_figures', 'attention_map_figure',
    'attention_path_figure', 'attention_range_figure', 'check_records',
    'curve_figure', 'depth_figure', 'file_name', 'has_query_maps',
    'has_steps', 'labels', 'plot_correlation', 'property_figure',
    'proportion_figure', 'read_stiffness_curve', 'read_stiffness_curves',
    'render_attention_page', 'render_report', 'save_figure',
    'seeds_figure', 'step_correlations', 'step_figure',
    'style', 'survival_figure', 'tns_figure'
]
