"""Loops, hooks and a file backend by which a training goes on bit for bit.

May import: recording, utils.
"""
from ..lazy_exports import lazy_exports

__getattr__, __all__ = lazy_exports(
    __name__,
    dict(
        atomic_backend=['AtomicLocalBackend'],
        atomic_checkpoint_hook=['AtomicCheckpointHook'],
        loops=['ResumableEpochBasedTrainLoop', 'ResumableIterBasedTrainLoop'],
        non_finite_loss_hook=['NonFiniteLossHook'],
        preemption_hook=['PreemptionHook']))
