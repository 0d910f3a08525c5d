"""Runs checks in a process beside the doctor, whatever they do."""
import atexit
import faulthandler
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from pkgutil import resolve_name
from tempfile import NamedTemporaryFile
from typing import Any

from .rows import REPORT_IT, attempt, row


class Series:
    """A process that runs one check after another.

    It imports the libraries once. A check that crashes, hangs or finds an
    error costs its own line: the next one is run in a new process.

    Args:
        device (str): ``'cpu'``, ``'cuda'``, ``'cuda:1'``, of which the checks
            see that GPU alone, or ``''``, whatever is there.
        seconds (float): for all checks; each may take half of them.
    """

    def __init__(self, device: str, seconds: float):
        self.device = device
        self.limit, self.end = seconds / 2, time.monotonic() + seconds
        self.process: Any = None

    def run(self, check: str, argument: str, name: str = '') -> Iterator[dict]:
        """The rows of a check; if it crashes or hangs, an error row.

        Args:
            check (str): ``'module:function'``; the function takes the
                argument and yields rows.
            argument (str): a device, or what else is checked.
            name (str): what its rows begin with; the function's, if left out.
        """
        name, start = name or check.rpartition(':')[2], time.monotonic()
        left = self.end - start
        if left < 1:
            yield row('warning', f'{name}: not checked, the time is over: set '
                      'a higher --seconds', check=name)
            return
        self._start()
        with suppress(BrokenPipeError):  # of a process that has ended since
            self.pipe.send((name, check, argument, min(self.limit, left)))
        failed = False
        while found := self._receive():
            failed |= found['level'] == 'error'
            yield dict(found, check=name,
                       seconds=round(time.monotonic() - start, 1))
        if self.process.exitcode is not None:
            yield dict(self._last_row(name, left), check=name)
        elif failed:  # an error of CUDA is one of all that comes after it
            self.stop()

    def stop(self) -> None:
        """End the process and all that it started."""
        if self.process:
            self.process.kill()
            with suppress(ProcessLookupError):  # all have ended
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.join()
        self.process = None

    def _start(self) -> None:
        if self.process and self.process.is_alive():
            return
        self.stop()
        context = multiprocessing.get_context('spawn')
        self.pipe, theirs = context.Pipe()
        self.log = NamedTemporaryFile()
        self.process = context.Process(
            target=_serve, args=(theirs, self.log.name, self.device))
        self.process.start()
        theirs.close()
        atexit.register(self.stop)  # multiprocessing would wait for it

    def _receive(self) -> dict | None:
        """The next row; None at the end of the check or of the process."""
        with suppress(EOFError, ConnectionError):
            # What the process has started may hold the pipe.
            while not self.pipe.poll(.5) and self.process.is_alive():
                pass
            return self.pipe.recv() if self.pipe.poll() else None
        self.process.join()
        return None

    def _last_row(self, name: str, left: float) -> dict:
        """What the end of the process means."""
        code = self.process.exitcode
        self.stop()
        log = Path(self.log.name).read_text(errors='replace').splitlines()
        if code == -signal.SIGALRM and left < self.limit:
            # A sound machine may be too slow for it.
            return row('warning', f'{name}: not done in the {left:.0f} s that '
                       'were left: set a higher --seconds', log=log[-30:])
        why = f'ended with code {code} ({"".join(log[-1:])})'
        if code == -signal.SIGALRM:
            why = (f'not done after {self.limit:.0f} s, is the machine busy? '
                   'Set a higher --seconds')
        elif code < 0:
            why = f'ended by {signal.Signals(-code).name}'
        return row('error', f'{name}: {why}: {REPORT_IT}', log=log[-30:])


def _serve(pipe: Connection, log: str, device: str) -> None:
    """Be that process."""
    os.setsid()
    threading.Thread(target=_end_with_the_doctor, daemon=True).start()
    for standard in (1, 2):
        os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND), standard)
    faulthandler.enable()  # the log says where it crashed
    # Without it cuBLAS is not deterministic, and torch refuses.
    os.environ['CUBLAS_WORKSPACE_CONFIG'] = ':4096:8'
    show(device)
    while True:
        name, check, argument, limit = pipe.recv()
        signal.setitimer(signal.ITIMER_REAL, limit)  # ends it, by SIGALRM
        for found in attempt(name, _check, check, argument):
            pipe.send(found)
        signal.setitimer(signal.ITIMER_REAL, 0)
        pipe.send(None)


def _check(name: str, argument: str) -> Iterator[dict]:
    # Not before it is tried: its module imports the libraries.
    yield from resolve_name(name)(argument)


def _end_with_the_doctor() -> None:
    """Kill this process and all it started when the doctor is gone."""
    doctor: Any = multiprocessing.parent_process()
    doctor.join()
    os.killpg(0, signal.SIGKILL)


def show(device: str) -> None:
    """Let this process see a device's GPU alone, and none for a CPU."""
    key, number = 'CUDA_VISIBLE_DEVICES', device.partition(':')[2]
    if device == 'cpu':
        os.environ[key] = ''
    elif number and key in os.environ:
        names = os.environ[key].split(',')
        os.environ[key] = ''.join(names[int(number):][:1])
    elif number:
        os.environ[key] = number
