"""Residual blocks of any model, as one forward pass shows them.

May import: no other folder.
"""
from .trace import (
    Place,
    Trace,
    first_tensor,
    trace,
    trace_run,
    with_first,
)

__all__ = [
    'Place', 'Trace', 'first_tensor', 'trace', 'trace_run', 'with_first']
