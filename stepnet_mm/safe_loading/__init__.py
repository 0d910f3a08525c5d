"""Loads checkpoints on every torch, and runs nothing that is in them.

May import: no other folder.
"""
from ..lazy_exports import lazy_exports

__getattr__, __all__ = lazy_exports(
    __name__, dict(loaders=['register_safe_loaders']))
