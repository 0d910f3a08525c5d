"""SIGUSR1, SIGUSR2 and SIGTERM, which stop a job, in all its processes.

Slurm signals every process of a job. The training process listens; its
loader workers and other children of multiprocessing ignore the signals, for
a worker that ends takes the training down before it can save.
"""
import os
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from multiprocessing import util

from torch.utils.data import DataLoader

#: Those that the system has.
JOB_SIGNALS = [getattr(signal, name) for name in (
    'SIGUSR1', 'SIGUSR2', 'SIGTERM') if hasattr(signal, name)]
#: Seconds in which several signals count as one: a launcher may repeat it.
_SAME = 1.0


def ignore_in_workers(loader: DataLoader) -> None:
    """Have a loader's workers, which are not yet started, ignore the signals.

    Not on macOS and Windows, where the sender of a signal is unknown.
    """
    if hasattr(signal, 'sigwaitinfo'):
        loader.worker_init_fn = partial(_ignore, loader.worker_init_fn)


def _ignore(then: Callable | None, worker: int) -> None:
    """A ``worker_init_fn`` that ignores the signals, then calls another.

    TERM from the training process itself, with which Python ends workers, is
    obeyed.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, JOB_SIGNALS)
    threading.Thread(target=_obey, args=(os.getppid(), ), daemon=True).start()
    if then is not None:
        then(worker)


def _obey(trainer: int) -> None:
    while signal.sigwaitinfo([signal.SIGTERM]).si_pid != trainer:
        pass
    os._exit(0)


class SignalListener:
    """Notes a signal, and ends the process at a second one.

    Children of multiprocessing, such as the pool of a VOC evaluation, ignore
    the signals, as loader workers do. A signal with a handler of the user's
    keeps it.
    """
    #: The one that is started and not stopped.
    current: 'SignalListener | None' = None

    def __init__(self):
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
        handlers = {s: signal.getsignal(s) for s in JOB_SIGNALS}
        taken = [s for s, handler in handlers.items() if callable(handler)
                 and handler is not signal.default_int_handler]
        self._handlers = {
            number: signal.signal(number, self._receive)
            for number in JOB_SIGNALS if number not in taken}
        util.register_after_fork(self, SignalListener._ignore_in_child)
        if hasattr(signal, 'pthread_sigmask'):
            # tools/train.py has blocked two of them since its start.
            signal.pthread_sigmask(signal.SIG_UNBLOCK, JOB_SIGNALS)
        return taken

    def stop(self) -> None:
        """Restore the earlier handlers."""
        for number, handler in self._handlers.items():
            if signal.getsignal(number) == self._receive:
                signal.signal(number, handler)
        self._handlers = {}
        if SignalListener.current is self:
            SignalListener.current = None

    def _receive(self, number, frame) -> None:
        now = time.monotonic()
        self._first = self._first or now
        if now - self._first > _SAME:
            os._exit(128 + number)

    def _ignore_in_child(self) -> None:
        """Called in a child of multiprocessing."""
        if SignalListener.current is self:
            if hasattr(signal, 'sigwaitinfo'):
                _ignore(None, 0)
            else:
                self.stop()


def stop_listening() -> None:
    """Stop the listener that is started, if there is one."""
    if SignalListener.current is not None:
        SignalListener.current.stop()
