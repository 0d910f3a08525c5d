"""Operators that torch has no single call for.

May import: utils.
"""
from ..utils.compilation import is_compiling, is_exporting
from .residual_tail import ResidualTail, attach_mean, take_attached_mean
from .tail_reference import Norm

__all__ = [
    'Norm', 'ResidualTail', 'attach_mean', 'is_compiling', 'is_exporting',
    'take_attached_mean']
