"""mmengine hooks, and a metric, that measure and report while a model runs.

May import: attention, datasets, recording, steps, stiffness, utils.
"""
from ..lazy_exports import lazy_exports

__getattr__, __all__ = lazy_exports(
    __name__, dict(
        attention_map_hook=['AttentionMapHook'],
        block_quantity_hook=['BlockQuantityHook'],
        broken_image_hook=['BrokenImageHook'],
        load_report_hook=['LoadReportHook'], tns_hook=['TNSHook'],
        tns_metric=['TNSMetric', 'TNSMetricHook']))
