"""Datasets, loading that survives broken images, and the mini-COCO generator.

May import: no other folder.
"""
from ..lazy_exports import lazy_exports

__getattr__, __all__ = lazy_exports(
    __name__,
    dict(
        loading=['LoadIntactImageFromFile'],
        mini_coco=['make_mini_coco']))
