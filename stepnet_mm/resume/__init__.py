"""Loops, hooks and a file backend for bit-for-bit resume.

"A run that resumes" in docs/architecture.md goes through them in order.

May import: safe_loading, utils.
"""
from ..lazy_exports import lazy_exports

__getattr__, __all__ = lazy_exports(
    __name__, dict(
        atomic_checkpoint_hook=['AtomicCheckpointHook', 'AtomicLocalBackend'],
        non_finite_loss_hook=['NonFiniteLossHook'],
        preemption_hook=['PreemptionHook'],
        resumable_loops=[
            'ResumableEpochBasedTrainLoop', 'ResumableIterBasedTrainLoop']))
