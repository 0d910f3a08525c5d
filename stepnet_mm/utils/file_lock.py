"""A lock that one process holds on a file, and that dies with it."""
import errno
import json
import os
import socket
import stat
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO

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
#: In s: lock_holder() has a lock for a moment, which is no reason to give up.
PATIENCE = .2
#: How a note begins.
NOTE = b'{"host"'
#: A link is not followed, and nothing is waited for.
AS_IT_IS = getattr(os, 'O_NOFOLLOW', 0) | getattr(os, 'O_NONBLOCK', 0)
#: What this process holds. Its own threads are not kept apart by lockf, and a
#: second handle of the file would end the lock when it is closed.
_OWN: set[tuple[int, Path]] = set()
_MUTEX = threading.Lock()


class LockTaken(Exception):
    """Somebody else holds the lock."""


@contextmanager
def file_lock(path, wait: bool = False,
              note: bool = True) -> Iterator[None]:
    """Hold a lock on a file until the block, or the process, ends.

    It is POSIX's: other processes and, where the file system does it, other
    machines see it; forked children do not hold it, so a killed process
    leaves none. Other threads of the process are kept out as well. The file
    says who holds it, and stays.

    Args:
        path (str | Path): the file; folders are made.
        wait (bool): whether to wait until it is free.
        note (bool): whether to write who holds it into the file.

    Raises:
        LockTaken: if somebody else holds it and ``wait`` is not set; says
            who, and since when.
        FileExistsError: if it is a link or no lock, and so stays as it is.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    file = _acquire(path, wait)
    try:
        if note:
            file.truncate(0)
            file.write(json.dumps(_holder()).encode())
            file.flush()
        yield
    finally:
        with _MUTEX:
            _OWN.discard(_key(path))
            file.close()


def lock_beside(path) -> Path:
    """Where to hold a lock on a file that is itself written and read.

    Args:
        path (str | Path): the file.
    """
    path = Path(path)
    return path.with_name(path.name + '.lock')


def lock_holder(path) -> str:
    """Who holds a lock, and since when; empty if nobody does.

    Args:
        path (str | Path): the file of the lock, which may be absent.
    """
    path = Path(path)
    try:
        with _MUTEX:
            _open_locked(path, 'rb').close()
    except FileNotFoundError:
        return ''
    except LockTaken as taken:
        return str(taken)
    return ''


def _acquire(path: Path, wait: bool) -> IO[bytes]:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            with _MUTEX:
                file = _open_locked(path, 'a+b')
                _OWN.add(_key(path))
                return file
        except LockTaken:
            if not wait and time.monotonic() > end:
                raise
        time.sleep(PATIENCE / 10)


def _key(path: Path) -> tuple[int, Path]:
    return os.getpid(), path.absolute()  # a fork holds nothing


def _open_locked(path: Path, mode: str) -> IO[bytes]:
    """The file, with the lock that its mode allows."""
    if _key(path) in _OWN:
        raise LockTaken('this process')
    file = open(path, mode, opener=_open)
    try:
        _lock(file, path)
    except BaseException:
        file.close()
        raise
    return file


def _open(path: str, flags: int) -> int:
    """The handle of a lock, which may come from elsewhere with its folder.

    Raises:
        FileExistsError: if it leads, or is, elsewhere.
    """
    try:
        handle = os.open(path, flags | AS_IT_IS, 0o666)
        if stat.S_ISREG(os.fstat(handle).st_mode) and NOTE.startswith(
                os.read(handle, len(NOTE))):
            os.lseek(handle, 0, os.SEEK_SET)
            return handle
        os.close(handle)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
    raise FileExistsError(f'{path}: expected a lock of this package or no '
                          'file, got a link or another file; move it away')


def _lock(file: IO[bytes], path: Path) -> None:
    if fcntl is None:
        return
    how = fcntl.LOCK_EX if file.writable() else fcntl.LOCK_SH
    try:
        fcntl.lockf(file, how | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in TAKEN:
            raise LockTaken(_describe(file)) from None
        if error.errno not in WITHOUT_LOCKS:
            raise
        warnings.warn(f'{path}: the file system has no locks ({error}), so '
                      'nothing keeps a second process out', stacklevel=5)


def _holder() -> dict:
    return dict(
        host=socket.gethostname(),
        process=os.getpid(),
        since=datetime.now().astimezone().isoformat(timespec='seconds'),
        **start_of_job())


def _describe(file: IO[bytes]) -> str:
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
