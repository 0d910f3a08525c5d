"""Operators that torch has no single call for."""
from .residual_tail import ResidualTail, can_finish, keep_mean, kept_mean

__all__ = ['ResidualTail', 'can_finish', 'keep_mean', 'kept_mean']
