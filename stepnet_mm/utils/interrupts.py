"""Ends a command at Ctrl-C with one line, whatever it is doing.

A command imports this first, before what takes seconds to import. It dies by
the signal, so that a shell has exit code 130 and stops its own loop too.
What is registered for the exit runs, nothing else: files that are written
whole are whole at any moment.
"""
import atexit
import contextlib
import os
import signal
import sys
import threading
from multiprocessing import parent_process
from types import FrameType

from .slurm import is_first_rank

_IMPORTED_BY = os.getpid()


def _listen() -> None:
    """Take SIGINT, where Python's own handler would raise its error."""
    if (threading.current_thread() is threading.main_thread() and
            signal.getsignal(signal.SIGINT) is signal.default_int_handler):
        signal.signal(signal.SIGINT, _end)


def _is_command() -> bool:
    """Not a worker, nor a fork that multiprocessing has not made one yet."""
    return os.getpid() == _IMPORTED_BY and parent_process() is None


def _end(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)  # a second one does not wait
    if _is_command():  # a worker says nothing, its parent does
        if is_first_rank():
            name = os.path.basename(sys.argv[0])
            os.write(2, f'{name}: interrupted\n'.encode())
        with contextlib.suppress(BaseException):
            atexit._run_exitfuncs()
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
    os.kill(os.getpid(), number)


_listen()
