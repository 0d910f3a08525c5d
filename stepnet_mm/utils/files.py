"""Files of a work dir, written atomically and read with care."""
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

#: In a work dir, the path of its last checkpoint; mmengine writes it.
LAST_CHECKPOINT = 'last_checkpoint'
#: In a work dir whose training NonFiniteLossHook stopped: why.
DIVERGED = 'diverged.txt'
#: Ends the name of a file that is being written.
UNFINISHED = '.unfinished'


@contextmanager
def named_errors(path, size: int = 0) -> Iterator[None]:
    """Put the path that a block writes into an OSError, as of a full disk.

    ``size`` is in bytes, if it is known.
    """
    try:
        yield
    except OSError as error:
        if error.errno and error.filename is None:
            error.filename = str(path)
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                error.strerror = f'{error.strerror}{_lack(path, size)}'
        raise


def free_bytes(path) -> int:
    """Those of the disk of a folder, or of a file in a folder."""
    return shutil.disk_usage(path if Path(path).is_dir()
                             else Path(path).parent).free


def _lack(path, size: int) -> str:
    needed = f' for {size:,} bytes' * bool(size)
    return (f': expected room{needed}, got {free_bytes(path):,} bytes free; '
            'make room, then go on (a training: by --resume)')


@contextmanager
def atomic_write(path, size: int = 0) -> Iterator[BinaryIO]:
    """An atomic write: the file takes its name when the block ends.

    A process killed at any moment leaves the old file or the new one, an
    error, which names the file and its ``size``, the old one. Folders are
    made. The block writes a file beside it, ``<path>.unfinished``.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(
            errno.EISDIR, 'expected a file or none, got a folder of this '
            'name; rename the folder', str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    with named_errors(path, size), _renamed(path) as file:
        yield file


@contextmanager
def _renamed(path: Path) -> Iterator[BinaryIO]:
    beside = path.with_name(path.name + UNFINISHED)
    try:
        beside.unlink(missing_ok=True)  # a copy of it may have the same inode
        with open(beside, 'xb') as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        _sync(path.parent)
    except Exception:
        beside.unlink(missing_ok=True)
        raise


def file_digest(path) -> str | None:
    """The first 12 digits of a file's SHA-256; None for no local file."""
    if not Path(path).is_file():
        return None
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]


def read_last_checkpoint(work_dir) -> str | None:
    """The path in ``last_checkpoint``; None without one.

    Raises:
        OSError: if it cannot be read now.
    """
    try:
        content = Path(work_dir, LAST_CHECKPOINT).read_bytes()
    except FileNotFoundError:
        return None
    return content.decode(errors='replace').strip() or None


def parse_line(line: bytes) -> dict | None:
    """A line of mmengine's log; None if it is no JSON object, or cut off."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _sync(folder: Path) -> None:
    """Have a rename reach the disk, if the file system can be told."""
    if os.name == 'posix':
        handle = os.open(folder, os.O_RDONLY)
        try:
            with suppress(OSError):
                os.fsync(handle)
        finally:
            os.close(handle)
