"""Loading that survives broken images, and the mini-COCO generator."""
from .checks import check_datasets
from .loading import LoadIntactImageFromFile
from .mini_coco import make_mini_coco

__all__ = ['LoadIntactImageFromFile', 'check_datasets', 'make_mini_coco']
