"""Saved records -> figures; a model is never seen here."""
from .training_curve import plot_stiffness_curve, read_stiffness_record

__all__ = ['plot_stiffness_curve', 'read_stiffness_record']
