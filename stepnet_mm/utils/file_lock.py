"""A lock on a file, which ends with the process that holds it."""
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

from .slurm_requeue import start_of_job

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

#: In a work dir, held by the training in it.
TRAINING_LOCK = 'training.lock'
#: Errors of lockf if another process holds the lock,
TAKEN = (errno.EACCES, errno.EAGAIN)
#: and if the file system has no locks.
WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)
#: In s; lock_holder() holds a lock for a moment.
PATIENCE = .2
#: How a note begins.
NOTE = b'{"host"'
#: No link is followed, and a pipe does not block.
AS_IT_IS = getattr(os, 'O_NOFOLLOW', 0) | getattr(os, 'O_NONBLOCK', 0)
#: The locks of this process. lockf does not keep its threads apart, and to
#: close a second handle of the file would end the lock.
_OWN: set[tuple[int, Path]] = set()
_MUTEX = threading.Lock()


class LockTaken(Exception):
    """Somebody else holds the lock.

    Attributes:
        note (dict): of the holder, if it is another process that has written
            it.
    """

    def __init__(self, holder: str, note: dict | None = None):
        super().__init__(holder)
        self.note = note or {}


@contextmanager
def file_lock(path, wait: bool = False) -> Iterator[None]:
    """Hold a lock on a file until the block, or the process, ends.

    It is a POSIX lock: other processes see it and, if the file system
    supports it, other machines; forked children do not hold it (they share
    a lock of the library filelock), so a killed process leaves none. Other
    threads of the process are kept out as well. The file has a note of its
    holder, and stays.

    Args:
        path (str | Path): the file; folders are made.
        wait (bool): whether to wait until it is free.

    Raises:
        LockTaken: if it is held and ``wait`` is not set; names the holder.
        FileExistsError: if the file is a link or no lock; it stays as it is.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    file = _acquire(path, wait)
    try:
        file.truncate(0)
        file.write(json.dumps(_holder()).encode())
        file.flush()
        yield
    finally:
        with _MUTEX:
            _OWN.discard(_key(path))
            file.close()


def lock_beside(path) -> Path:
    """The lock's file for a file that is itself written and read."""
    path = Path(path)
    return path.with_name(path.name + '.lock')


def lock_holder(path) -> str:
    """The holder of a lock, whose file may be absent; '' without one."""
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
    """Open a lock; the folder, and so the file, may come from others.

    Raises:
        FileExistsError: if it is a link or no lock.
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
            raise _taken(file) from None
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


def _taken(file: IO[bytes]) -> LockTaken:
    file.seek(0)
    try:
        note = json.loads(file.read())
        holder = 'process {process} on {host} since {since}'.format(**note)
    except (ValueError, TypeError, KeyError):  # not, or not yet, a note
        return LockTaken('another process')
    return LockTaken(holder, note)
