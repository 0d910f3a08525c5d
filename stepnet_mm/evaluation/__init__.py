"""mmengine metrics."""
from .tns_metric import TNSMetric, TNSMetricHook

__all__ = ['TNSMetric', 'TNSMetricHook']
