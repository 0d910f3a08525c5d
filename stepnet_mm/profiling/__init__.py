"""Networks of configs with images for them, timed in turn; their memory.

May import: config, launch.
"""
from ..lazy_exports import lazy_exports

__getattr__, __all__ = lazy_exports(__name__, dict(networks=[
    'Forward', 'TimedNetwork', 'count_saved', 'image_size', 'interleave',
    'median_ratio', 'prepare', 'summed']))
