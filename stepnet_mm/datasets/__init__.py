"""Datasets, loading that survives broken images, and the mini-COCO generator.
"""
from ..optional import import_binding
from .checks import check_datasets
from .loading import LoadIntactImageFromFile
from .mini_coco import make_mini_coco

import_binding(f'{__name__}.mmpretrain_binding', 'mmpretrain')

__all__ = ['LoadIntactImageFromFile', 'check_datasets', 'make_mini_coco']
