"""Loops, hooks and a file backend by which a training goes on bit for bit.

Saving: ``AtomicCheckpointHook.save`` (atomic_checkpoint_hook.py), at its
interval, or called by ``PreemptionHook`` at a signal (signal_listener.py) and
by ``NonFiniteLossHook`` before a NaN, gathers ``training_state``
(training_state.py), beside what mmengine saves, and writes through
``AtomicLocalBackend``.
Resuming, in four files: ``AtomicCheckpointHook.before_run`` chooses the file,
the ``latest_checkpoint`` that is whole; mmengine loads it;
``after_load_checkpoint`` hands the state to ``ResumableLoop`` (whose ``run``
takes it back: place, buffers, random generators); its loader
(resumable_loader.py) begins at that batch. loops.py has the two loops.

May import: safe_loading, utils.
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
