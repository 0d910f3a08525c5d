"""Loader workers that leave a job's signals to the process that trains."""
import os
import signal
import threading

from torch.utils.data import DataLoader

#: What tells a job to stop, where the system has it.
JOB_SIGNALS = [
    signal.Signals[name] for name in ('SIGUSR1', 'SIGUSR2', 'SIGTERM')
    if name in signal.Signals.__members__
]


class DeafWorker:
    """A ``worker_init_fn`` that ignores some signals, then calls another.

    Slurm signals every process of a job. A worker that dies of it takes the
    training down before it can save. TERM from the training process itself,
    with which Python ends workers, is obeyed.

    Args:
        worker_init_fn (callable, optional): called with the worker's number.
        signals (sequence[Signals]): those to ignore.
    """

    def __init__(self, worker_init_fn, signals):
        self.worker_init_fn = worker_init_fn
        self.signals = signals
        self.trainer = os.getpid()

    def __call__(self, worker: int) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, self.signals)
        if signal.SIGTERM in self.signals:
            threading.Thread(target=self._obey, daemon=True).start()
        if self.worker_init_fn is not None:
            self.worker_init_fn(worker)

    def _obey(self) -> None:
        while signal.sigwaitinfo([signal.SIGTERM]).si_pid != self.trainer:
            pass
        os._exit(0)


def deafen(loader: DataLoader, signals=tuple(JOB_SIGNALS)) -> None:
    """Have a loader's workers, not yet started, ignore signals.

    Not on macOS and Windows, where a sender cannot be told.
    """
    if hasattr(signal, 'sigwaitinfo'):
        loader.worker_init_fn = DeafWorker(loader.worker_init_fn, signals)
