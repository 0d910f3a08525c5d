"""mmengine hooks, and the loader of checkpoints."""
from .broken_image_hook import BrokenImageHook
from .load_report_hook import LoadReportHook
from .safe_loading import register_safe_loaders
from .tns_hook import TNSHook

register_safe_loaders()

__all__ = [
    'BrokenImageHook', 'LoadReportHook', 'TNSHook', 'register_safe_loaders'
]
