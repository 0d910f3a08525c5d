"""Ends a command with one line: at Ctrl-C, and at a user's mistake.

A command imports this first, before what takes seconds to import. It dies by
the signal, so that a shell has exit code 130 and stops its own loop too.
What is registered for the exit runs, nothing else: files that are written
whole are whole at any moment.
"""
import atexit
import contextlib
import os
import re
import signal
import sys
from multiprocessing import parent_process
from types import FrameType

from .slurm import is_first_rank

_IMPORTED_BY = os.getpid()
#: What this package says of what a user wrote.
_MISTAKE = re.compile(r'[^\n]+: expected [^\n]+, got [^\n]+')


def _end(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)  # a second one does not wait
    # A worker says nothing, nor a fork that is none yet: its parent does.
    if os.getpid() == _IMPORTED_BY and parent_process() is None:
        if is_first_rank():
            name = os.path.basename(sys.argv[0])
            os.write(2, f'{name}: interrupted\n'.encode())
        with contextlib.suppress(BaseException):
            atexit._run_exitfuncs()
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
    os.kill(os.getpid(), number)


def _end_in_a_line(kind, error, traceback, before=sys.excepthook) -> None:
    """An excepthook: a user's mistake, or a file's error, has no traceback."""
    mistake = isinstance(error, (ValueError, OSError)) or isinstance(
        error.__cause__, ValueError)
    if mistake and (_MISTAKE.fullmatch(str(error))
                    or getattr(error, 'filename', None)):
        name = os.path.basename(sys.argv[0])
        print(f'{name}: error: {error} (--traceback: where)', file=sys.stderr)
    else:
        before(kind, error, traceback)


# What runs in the background ignores it.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _end)
if '--traceback' in sys.argv:
    sys.argv.remove('--traceback')
elif parent_process() is None:
    sys.excepthook = _end_in_a_line
