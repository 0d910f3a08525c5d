"""Loops, hooks and a file backend for bit-for-bit resume.

Saving: at its interval, after SIGUSR1, SIGUSR2 or SIGTERM
(signal_listener.py, ``PreemptionHook``) and before an update with a NaN
(``NonFiniteLossHook``) ``AtomicCheckpointHook.save`` adds a
``training_state`` to mmengine's checkpoint and writes it through
``AtomicLocalBackend``.
Resuming: ``AtomicCheckpointHook.before_run`` chooses the file, the
``latest_checkpoint`` that is undamaged; mmengine loads it;
``after_load_checkpoint`` hands the state to the ``ResumableLoop``, which
restores place, buffers and random generators; its ``ResumableLoader`` skips
the batches already seen.

May import: safe_loading, utils.
"""
from ..lazy_exports import lazy_exports

__getattr__, __all__ = lazy_exports(
    __name__,
    dict(
        atomic_checkpoint_hook=['AtomicCheckpointHook', 'AtomicLocalBackend'],
        non_finite_loss_hook=['NonFiniteLossHook'],
        preemption_hook=['PreemptionHook'],
        resumable_loops=[
            'ResumableEpochBasedTrainLoop', 'ResumableIterBasedTrainLoop']))
