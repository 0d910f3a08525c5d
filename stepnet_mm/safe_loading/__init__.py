"""Loads checkpoints without executing code of a file, on every torch.

May import: no other folder.
"""
from ..lazy_exports import lazy_exports

__getattr__, __all__ = lazy_exports(
    __name__, dict(loaders=['register_safe_loaders']))
