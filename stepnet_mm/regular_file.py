"""Opens files, and neither pipes nor devices, which may never answer."""
import os
import stat
from typing import BinaryIO


def check_regular(path) -> None:
    """Raise an error if there is something else under a file's name.

    Args:
        path (str | Path): the file, or a link to it.

    Raises:
        ValueError: if it is a pipe, a device, a folder or a socket.
        OSError: if there is none, or it cannot be looked at.
    """
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode):
        raise ValueError(
            f'{path}: expected a regular file, got {stat.filemode(mode)} '
            '(p: a pipe, d: a folder); put the file itself there')


def open_regular(path) -> BinaryIO:
    """Open a file to read its bytes; raises as :func:`check_regular`."""
    check_regular(path)
    return open(path, 'rb', opener=_without_waiting)


def _without_waiting(path, flags: int) -> int:
    return os.open(path, flags | getattr(os, 'O_NONBLOCK', 0))
