"""A process that runs checks and may crash or hang."""
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

from .report import REPORT_IT, attempt, row


class CheckProcess:
    """Runs one check after another in one process.

    The process imports the libraries once. After a crash, a hang or an error
    the next check gets a new one.

    Args:
        device (str): ``'cpu'``, ``'cuda'``, ``'cuda:1'`` (that GPU alone), or
            ``''``, whatever there is.
        seconds (float): for all checks; each may take half of them.
    """

    def __init__(self, device: str, seconds: float):
        self.device = device
        self.limit, self.end = seconds / 2, time.monotonic() + seconds
        self.process: Any = None

    def run(self, check: str, argument: str, name: str = '') -> Iterator[dict]:
        """The rows of a check, and one more if it crashes or hangs.

        Args:
            check (str): ``'module:function'``, a function that yields rows.
            argument (str): the function's argument.
            name (str): begins the rows; defaults to the function's name.
        """
        name, start = name or check.rpartition(':')[2], time.monotonic()
        left = self.end - start
        if left < 1:
            yield row('warning', f'{name}: not checked, the time is over: set '
                      'a higher --seconds', check=name)
            return
        self._start()
        with suppress(BrokenPipeError):  # the process has ended since
            self.pipe.send((name, check, argument, min(self.limit, left)))
        failed = False
        while found := self._receive():
            failed |= found['level'] == 'error'
            yield dict(found, check=name,
                       seconds=round(time.monotonic() - start, 1))
        if self.process.exitcode is not None:
            yield dict(self._end_row(name, left), check=name)
        elif failed:  # an error of CUDA stays in its process
            self.stop()

    def stop(self) -> None:
        """End the process and all that it started."""
        if self.process:
            self.process.kill()
            with suppress(ProcessLookupError):
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
            # A child of the process may hold the pipe open.
            while not self.pipe.poll(.5) and self.process.is_alive():
                pass
            return self.pipe.recv() if self.pipe.poll() else None
        self.process.join()
        return None

    def _end_row(self, name: str, left: float) -> dict:
        """The row of a process that has ended."""
        code = self.process.exitcode
        self.stop()
        log = Path(self.log.name).read_text(errors='replace').splitlines()
        if code == -signal.SIGALRM:  # a sound machine may be too slow
            level = 'warning' if left < self.limit else 'error'
            seconds = min(left, self.limit)
            return row(level, f'{name}: not done in {seconds:.0f} s: set a '
                       'higher --seconds', log=log[-30:])
        why = f'ended by {signal.Signals(-code).name}' if code < 0 else (
            f'ended with code {code} ({"".join(log[-1:])})')
        return row('error', f'{name}: {why}: {REPORT_IT}', log=log[-30:])


def _serve(pipe: Connection, log: str, device: str) -> None:
    """Run the checks that come through the pipe."""
    os.setsid()
    threading.Thread(target=_end_with_the_doctor, daemon=True).start()
    for standard in (1, 2):
        os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND), standard)
    faulthandler.enable()
    os.environ['CUBLAS_WORKSPACE_CONFIG'] = ':4096:8'  # for determinism
    show(device)
    while True:
        name, check, argument, limit = pipe.recv()
        signal.setitimer(signal.ITIMER_REAL, limit)  # SIGALRM ends it
        for found in attempt(name, _rows_of, check, argument):
            pipe.send(found)
        signal.setitimer(signal.ITIMER_REAL, 0)
        pipe.send(None)


def _rows_of(check: str, argument: str) -> Iterator[dict]:
    yield from resolve_name(check)(argument)  # imports the libraries


def _end_with_the_doctor() -> None:
    """Kill this process and its children when the doctor is gone."""
    doctor: Any = multiprocessing.parent_process()
    doctor.join()
    os.killpg(0, signal.SIGKILL)


def show(device: str) -> None:
    """Let this process see the GPU of a device alone, for a CPU none."""
    key, number = 'CUDA_VISIBLE_DEVICES', device.partition(':')[2]
    if device == 'cpu':
        os.environ[key] = ''
    elif number and key in os.environ:
        names = os.environ[key].split(',')
        os.environ[key] = ''.join(names[int(number):][:1])
    elif number:
        os.environ[key] = number
