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

    def __init__(self, signals: Sequence[signal.Signals]):
        self.signals = signals
        self.received = False
        self._handlers: dict = {}
        self._watch: _SecondSignal | None = None
        self._ignore = IgnoreSignals(None, signals)

    @property
    def listening(self) -> bool:
        """Whether it has been started, in the main thread."""
        return bool(self._handlers)

    def start(self) -> None:
        """Install the handlers; Python allows it in the main thread only."""
        self.received = False
        if threading.current_thread() is not threading.main_thread():
            return
        for left in set(_LISTENING):  # of a preempted training
            left.stop()
        self._handlers = {number: signal.signal(number, self._receive)
                          for number in self.signals}
        self._watch = _SecondSignal(self.signals)
        _LISTENING.add(self)
        util.register_after_fork(self, SignalListener._after_fork)
        if hasattr(signal, 'pthread_sigmask'):
            # tools/train.py has blocked them since its start.
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self.signals)

    def stop(self) -> None:
        """Restore the earlier handlers."""
        _LISTENING.discard(self)
        self._give_back()

    def _give_back(self) -> None:
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
        """In a child of multiprocessing, which runs it after every fork."""
        if self in _LISTENING and hasattr(signal, 'sigwaitinfo'):
            self._ignore(0)


#: The listener that is started and not stopped.
_LISTENING: set[SignalListener] = set()


def _in_child() -> None:
    """A child must not wake the parent through the sockets they share."""
    for listener in _LISTENING:
        listener._give_back()


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
