"""Operators that torch has no single call for.

May import: utils.
"""
from ..utils.compilation import is_compiling, is_exporting
from .residual_tail import ResidualTail
from .tail_reference import Norm

__all__ = ['Norm', 'ResidualTail', 'is_compiling', 'is_exporting']
