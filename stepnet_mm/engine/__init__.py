"""mmengine hooks and loops, and the loader of checkpoints."""
from .atomic_backend import AtomicLocalBackend
from .atomic_checkpoint_hook import AtomicCheckpointHook
from .attention_map_hook import AttentionMapHook
from .broken_image_hook import BrokenImageHook
from .load_report_hook import LoadReportHook
from .loops import ResumableEpochBasedTrainLoop, ResumableIterBasedTrainLoop
from .non_finite_loss_hook import NonFiniteLossHook
from .preemption_hook import PreemptionHook
from .safe_loading import register_safe_loaders
from .tns_hook import TNSHook

register_safe_loaders()

__all__ = [
    'AtomicCheckpointHook', 'AtomicLocalBackend', 'AttentionMapHook',
    'BrokenImageHook', 'LoadReportHook', 'NonFiniteLossHook', 'PreemptionHook',
    'ResumableEpochBasedTrainLoop', 'ResumableIterBasedTrainLoop', 'TNSHook',
    'register_safe_loaders'
]
