"""A lock that one process holds on a file, and that dies with it."""
import errno
import json
import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from .slurm import start_of_job

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

#: In a work dir, held by the training in it.
TRAINING_LOCK = 'training.lock'
#: What lockf says where another process holds the lock.
TAKEN = (errno.EACCES, errno.EAGAIN)
#: What it says where the file system has no locks.
WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)


class LockTaken(Exception):
    """Another process holds the lock."""


@contextmanager
def file_lock(path, wait: bool = False,
              note: bool = True) -> Iterator[None]:
    """Hold a lock on a file until the block, or the process, ends.

    It is POSIX's: other processes and, where the file system does it, other
    machines see it; forked children do not hold it, so a killed process
    leaves none. Within one process it locks nothing out. The file says who
    holds it, and stays.

    Args:
        path (str | Path): the file; folders are made.
        wait (bool): whether to wait until it is free.
        note (bool): whether to write who holds it into the file.

    Raises:
        LockTaken: if another process holds it and ``wait`` is not set;
            says who, and since when.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, 'a+b') as file:
        _lock(file, path, wait)
        if note:
            file.truncate(0)
            file.write(json.dumps(_holder()).encode())
            file.flush()
        yield


def _lock(file: BinaryIO, path: Path, wait: bool) -> None:
    if fcntl is None:
        return
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno in TAKEN:
            raise LockTaken(_describe(file)) from None
        if error.errno not in WITHOUT_LOCKS:
            raise
        warnings.warn(f'{path}: the file system has no locks ({error}), so '
                      'nothing keeps a second process out', stacklevel=4)


def _holder() -> dict:
    return dict(
        host=socket.gethostname(),
        process=os.getpid(),
        since=datetime.now().astimezone().isoformat(timespec='seconds'),
        **start_of_job())


def _describe(file: BinaryIO) -> str:
    file.seek(0)
    try:
        holder = json.loads(file.read())
        return (f'process {holder["process"]} on {holder["host"]} since '
                f'{holder["since"]}')
    except (ValueError, TypeError, KeyError):  # it is writing that just now
        return 'another process'


def read_note(path) -> dict:
    """What a lock's holder wrote; empty if that cannot be read.

    Not for a process that holds the lock: it would lose it.
    """
    try:
        note = json.loads(Path(path).read_bytes())
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}
