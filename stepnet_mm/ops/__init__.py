"""Operators that torch has no single call for.

May import: no other folder.
"""
from .compilation import is_compiling, is_exporting
from .residual_tail import ResidualTail, can_finish, keep_mean, kept_mean

__all__ = [
    'ResidualTail', 'can_finish', 'is_compiling', 'is_exporting', 'keep_mean',
    'kept_mean'
]
