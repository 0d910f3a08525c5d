"""mmengine hooks and loops, and the loader of checkpoints."""
from ..lazy_exports import lazy_exports

__getattr__, __all__ = lazy_exports(
    __name__,
    dict(
        atomic_backend=['AtomicLocalBackend'],
        atomic_checkpoint_hook=['AtomicCheckpointHook'],
        attention_map_hook=['AttentionMapHook'],
        broken_image_hook=['BrokenImageHook'],
        load_report_hook=['LoadReportHook'],
        loops=['ResumableEpochBasedTrainLoop', 'ResumableIterBasedTrainLoop'],
        non_finite_loss_hook=['NonFiniteLossHook'],
        preemption_hook=['PreemptionHook'],
        safe_loading=['register_safe_loaders'],
        tns_hook=['TNSHook']))
