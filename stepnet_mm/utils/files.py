"""Files of a work dir, written atomically and read with care."""
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ..regular_file import open_regular

#: In a work dir, the path of its last checkpoint; mmengine writes it.
POINTER = 'last_checkpoint'
#: In a work dir whose training NonFiniteLossHook stopped: why.
DIVERGED = 'diverged.txt'
#: Ends the name of a file that is being written.
UNFINISHED = '.unfinished'


@contextmanager
def written_whole(path) -> Iterator[BinaryIO]:
    """An atomic write: the file takes its name when the block ends.

    A process killed at any moment leaves the old file or the new one, an
    error the old one. Folders are made.

    Yields:
        BinaryIO: a file beside it, ``<path>.unfinished``.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + UNFINISHED)
    try:
        # A pipe or a link may have the name.
        beside.unlink(missing_ok=True)
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
    sha = hashlib.sha256()
    with open(path, 'rb') as file:
        while block := file.read(2**20):
            sha.update(block)
    return sha.hexdigest()[:12]


def read_pointer(work_dir) -> str | None:
    """The path in ``last_checkpoint``; None without one.

    Raises:
        ValueError: if it is no file.
        OSError: if it cannot be read now.
    """
    try:
        with open_regular(Path(work_dir, POINTER)) as file:
            return file.read(4096).decode(errors='replace').strip() or None
    except FileNotFoundError:
        return None


def parse_line(line: bytes) -> dict | None:
    """A line of mmengine's log; None if it is no JSON object, or cut off."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _sync(folder: Path) -> None:
    """Have a rename reach the disk."""
    if os.name == 'posix':
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
