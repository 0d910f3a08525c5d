"""Operators that torch has no single call for."""
from .residual_tail import ResidualTail, can_finish

__all__ = ['ResidualTail', 'can_finish']
