"""Handlers of SIGUSR1, SIGUSR2 and SIGTERM, which stop a job."""
import os
import signal
import socket
import threading
import time
from collections.abc import Sequence
from multiprocessing import util

from ..utils.worker_signals import IgnoreSignals

#: Seconds in which several signals count as one: a launcher may repeat it.
_SAME = 1.0


class SignalListener:
    """Sets ``received`` at a signal, and ends the process at a second one.

    Child processes do not listen. Those of multiprocessing, such as the pool
    of a VOC evaluation, ignore the signals, as loader workers do.

    Args:
        signals (sequence[Signals]): the signals.
    """
    #: The one that is started and not stopped.
    current: 'SignalListener | None' = None

    def __init__(self, signals: Sequence[signal.Signals]):
        self.signals = signals
        self.received = False
        self._handlers: dict = {}
        self._watch: _SecondSignal | None = None

    @property
    def listening(self) -> bool:
        """Whether it has been started, in the main thread."""
        return bool(self._handlers)

    def start(self) -> None:
        """Install the handlers; Python allows it in the main thread only."""
        self.received = False
        if threading.current_thread() is not threading.main_thread():
            return
        stop_listening()  # of a preempted training
        SignalListener.current = self
        self._handlers = {number: signal.signal(number, self._receive)
                          for number in self.signals}
        self._watch = _SecondSignal(self.signals)
        util.register_after_fork(self, SignalListener._after_fork)
        if hasattr(signal, 'pthread_sigmask'):
            # tools/train.py has blocked them since its start.
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self.signals)

    def stop(self) -> None:
        """Restore the earlier handlers."""
        self.give_back()
        if SignalListener.current is self:
            SignalListener.current = None

    def give_back(self) -> None:
        """The same in a child, which must not wake its parent."""
        for number, handler in self._handlers.items():
            if signal.getsignal(number) == self._receive:
                signal.signal(number, handler)
        self._handlers = {}
        if self._watch is not None:
            self._watch.stop()
            self._watch = None

    def _receive(self, number, frame) -> None:
        self.received = True

    def _after_fork(self) -> None:
        """In a child of multiprocessing."""
        if SignalListener.current is self:
            if hasattr(signal, 'sigwaitinfo'):  # as ignore_in_workers
                IgnoreSignals(None, self.signals)(0)


def stop_listening() -> None:
    """Stop the listener that is started, if there is one."""
    if SignalListener.current is not None:
        SignalListener.current.stop()


def _in_child() -> None:
    if SignalListener.current is not None:
        SignalListener.current.give_back()


if hasattr(os, 'register_at_fork'):  # not on Windows
    os.register_at_fork(after_in_child=_in_child)


class _SecondSignal(threading.Thread):
    """Ends the process at a second signal, during any wait.

    A Python handler does not run while the process waits for a GPU, a disk or
    a dead rank.
    """

    def __init__(self, signals: Sequence[signal.Signals]):
        super().__init__(daemon=True)
        self.signals = signals
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        self.start()

    def run(self) -> None:
        """Read the numbers of the signals."""
        first = None
        while numbers := self._reader.recv(64):
            for number in set(numbers) & set(self.signals):
                now = time.monotonic()
                first = first or now
                if now - first > _SAME:
                    os._exit(128 + number)

    def stop(self) -> None:
        """Stop watching; the thread ends."""
        signal.set_wakeup_fd(-1)
        self._writer.close()
