"""Datasets, image loading that skips broken files, warnings, mini-COCO.

May import: utils.
"""
from ..lazy_exports import lazy_exports

__getattr__, __all__ = lazy_exports(
    __name__, dict(broken_images=['LoadIntactImageFromFile'],
                   mini_coco=['make_mini_coco']))
