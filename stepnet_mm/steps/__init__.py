"""Step-size modules: (identity, residual) -> scaled residual."""
from .adaptor import StepAdaptor
from .base import StepSize, build_step

__all__ = ['StepAdaptor', 'StepSize', 'build_step']
