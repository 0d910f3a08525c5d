"""Datasets, image loading that skips broken files, warnings.

May import: utils.
"""
from ..lazy_exports import lazy_exports

__getattr__, __all__ = lazy_exports(
    __name__, dict(broken_images=['LoadIntactImageFromFile']))
