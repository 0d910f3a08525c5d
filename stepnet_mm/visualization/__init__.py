"""Saved records -> figures; a model is never seen here.

matplotlib is imported with the first figure that is asked for.

May import: attention, stiffness, utils.
"""
from ..lazy_exports import lazy_exports

__getattr__, __all__ = lazy_exports(
    __name__, dict(
        attention_maps=['attention_figures'],
        stiffness_figures=['check_records', 'training_figure', 'depth_figure',
                           'proportion_figure', 'seeds_figure',
                           'survival_figure'],
        style=['as_image', 'save_figure']))
