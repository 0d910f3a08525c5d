"""A lock on a file, which ends with the process that holds it."""
import errno
import os
import socket
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from io import FileIO
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from .files import named_errors

#: Errors of lockf if another process holds the lock; each other one means
#: that the file system has no locks.
TAKEN = (errno.EACCES, errno.EAGAIN)


class LockTaken(ValueError):
    """Another process holds the lock; the text names it."""


@contextmanager
def file_lock(path, wait: float = 0) -> Iterator[None]:
    """Hold a lock on a file until the block, or the process, ends.

    It is a POSIX lock: other processes see it and, if the file system
    supports it, other machines; threads and a second lock of the same
    process do not. Forked children do not hold it, so a killed process
    leaves none. The file names its holder, and stays. Folders are made; a
    lock that is taken is waited for, ``wait`` seconds at most.

    Raises:
        LockTaken: if another process holds it.
        OSError: if it cannot be written.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without a buffer, that a full disk is seen once.
    with open(path, 'a+b', buffering=0) as file:
        with named_errors(path):
            _lock(file, path, time.monotonic() + wait)
            file.truncate(0)
            file.write(_holder().encode())
        yield


def lock_beside(path) -> Path:
    """The lock's file for a file that is itself written and read."""
    path = Path(path)
    return path.with_name(path.name + '.lock')


def _lock(file: FileIO, path: Path, end: float) -> None:
    while fcntl is not None:
        try:
            return fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in TAKEN:
                warnings.warn(
                    f'{path}: the file system has no locks ({error}), so '
                    'nothing keeps a second process out', stacklevel=4)
                return
        if time.monotonic() >= end:
            file.seek(0)
            holder = file.readline().decode(errors='replace').rstrip()
            raise LockTaken(
                f'{path}: expected to be free, got '
                f'{holder or "another process"}, which works there; wait for '
                'it, or choose another place')
        time.sleep(.05)


def _holder() -> str:
    since = datetime.now().astimezone().isoformat(timespec='seconds')
    return f'process {os.getpid()} on {socket.gethostname()} since {since}\n'
