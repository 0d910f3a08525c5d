"""Networks of configs with images for them, timed in turn; their memory.

May import: config, launch.
"""
from ..lazy_exports import lazy_exports

__getattr__, __all__ = lazy_exports(
    __name__,
    dict(
        config_inputs=['Forward', 'image_size', 'prepare'],
        timing=['Contestant', 'count_saved', 'interleave', 'median_ratio',
                'peak_bytes', 'summed']))
