"""Loader workers that ignore SIGUSR1, SIGUSR2 and SIGTERM."""
import os
import signal
import threading
from collections.abc import Callable, Sequence

from torch.utils.data import DataLoader

#: Signals that tell a job to stop, where the system has them.
JOB_SIGNALS = [
    getattr(signal, name) for name in ('SIGUSR1', 'SIGUSR2', 'SIGTERM')
    if hasattr(signal, name)
]


class IgnoreSignals:
    """A ``worker_init_fn`` that ignores some signals, then calls another.

    Slurm signals every process of a job. A worker that ends at it takes the
    training down before it can save. TERM from the training process itself,
    with which Python ends workers, is obeyed.

    Args:
        worker_init_fn (callable, optional): called with the worker's number.
        signals (sequence[Signals]): those to ignore.
    """

    def __init__(self, worker_init_fn: Callable | None,
                 signals: Sequence[signal.Signals]):
        self.worker_init_fn = worker_init_fn
        self.signals = signals

    def __call__(self, worker: int) -> None:
        """Called by torch at the start of a worker, in its process."""
        signal.pthread_sigmask(signal.SIG_BLOCK, self.signals)
        if signal.SIGTERM in self.signals:
            threading.Thread(target=_obey, args=(os.getppid(), ),
                             daemon=True).start()
        if self.worker_init_fn is not None:
            self.worker_init_fn(worker)


def _obey(trainer: int) -> None:
    while signal.sigwaitinfo([signal.SIGTERM]).si_pid != trainer:
        pass
    os._exit(0)


def ignore_in_workers(
        loader: DataLoader,
        signals: Sequence[signal.Signals] = tuple(JOB_SIGNALS)) -> None:
    """Have a loader's workers, which are not yet started, ignore signals.

    Not on macOS and Windows, where the sender of a signal is unknown.
    """
    if hasattr(signal, 'sigwaitinfo'):
        loader.worker_init_fn = IgnoreSignals(loader.worker_init_fn, signals)
