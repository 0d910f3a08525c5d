"""Parameters, FLOPs, latency and memory of a network.

May import: config, launch, steps.
"""
from ..lazy_exports import lazy_exports

__getattr__, __all__ = lazy_exports(
    __name__,
    dict(
        config_inputs=['image_channels', 'image_size', 'prepare'],
        counting=['COLUMNS', 'count'],
        forward=['Forward'],
        timing=['Contestant', 'count_saved', 'interleave', 'measure',
                'median_ratio', 'peak_memory', 'summed']))
