"""SIGUSR1, SIGUSR2 and SIGTERM, which stop a job, in all its processes.

Slurm signals every process of a job. The training process listens; its
loader workers and other children of multiprocessing ignore the signals, for
a worker that ends takes the training down before it can save.
"""
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing import util

from torch.utils.data import DataLoader

#: Those that the system has.
JOB_SIGNALS = [getattr(signal, name) for name in (
    'SIGUSR1', 'SIGUSR2', 'SIGTERM') if hasattr(signal, name)]
#: Seconds in which several signals count as one: a launcher may repeat it.
_SAME = 1.0


class IgnoreSignals:
    """A ``worker_init_fn`` that ignores some signals, then calls another.

    TERM from the training process itself, with which Python ends workers, is
    obeyed.
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


class SignalListener:
    """Notes a signal, and ends the process at a second one.

    Children of multiprocessing, such as the pool of a VOC evaluation, ignore
    the signals, as loader workers do; others have the handlers of before.
    A signal with a handler of the user's keeps it.
    """
    #: The one that is started and not stopped.
    current: 'SignalListener | None' = None

    def __init__(self, signals: Sequence[signal.Signals]):
        self.signals = signals
        #: When the first one came.
        self._first: float | None = None
        self._handlers: dict = {}

    @property
    def received(self) -> bool:
        """Whether a signal has come since the start."""
        return self._first is not None

    def start(self) -> list[signal.Signals]:
        """Install the handlers; Python allows it in the main thread only.

        Returns the signals that have, and keep, another handler.
        """
        self._first = None
        if threading.current_thread() is not threading.main_thread():
            return []
        stop_listening()  # of a preempted training
        SignalListener.current = self
        handlers = {s: signal.getsignal(s) for s in self.signals}
        taken = [s for s, handler in handlers.items() if callable(handler)
                 and handler is not signal.default_int_handler]
        self._handlers = {
            number: signal.signal(number, self._receive)
            for number in self.signals if number not in taken}
        util.register_after_fork(self, SignalListener._ignore_in_child)
        if hasattr(signal, 'pthread_sigmask'):
            # tools/train.py has blocked them since its start.
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self.signals)
        return taken

    def stop(self) -> None:
        """Restore the earlier handlers."""
        self.give_back()
        if SignalListener.current is self:
            SignalListener.current = None

    def give_back(self) -> None:
        """Restore them; :attr:`current` stays, which a fork's child needs."""
        for number, handler in self._handlers.items():
            if signal.getsignal(number) == self._receive:
                signal.signal(number, handler)
        self._handlers = {}

    def _receive(self, number, frame) -> None:
        now = time.monotonic()
        self._first = self._first or now
        if now - self._first > _SAME:
            os._exit(128 + number)

    def _ignore_in_child(self) -> None:
        """Called in a child of multiprocessing."""
        if SignalListener.current is self and hasattr(signal, 'sigwaitinfo'):
            IgnoreSignals(None, self.signals)(0)


def stop_listening() -> None:
    """Stop the listener that is started, if there is one."""
    if SignalListener.current is not None:
        SignalListener.current.stop()


def _give_back_in_child() -> None:
    if SignalListener.current is not None:
        SignalListener.current.give_back()


if hasattr(os, 'register_at_fork'):  # not on Windows
    os.register_at_fork(after_in_child=_give_back_in_child)
