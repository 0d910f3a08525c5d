"""Files that are whole or not there."""
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def written_whole(path) -> Iterator[BinaryIO]:
    """A file to write into, which takes its name when the block ends.

    A process killed before leaves what was there before. Folders are made.

    Args:
        path (str | Path): the file.

    Yields:
        BinaryIO: a file beside it, ``<path>.unfinished``.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f'{path.name}.unfinished')
    with open(beside, 'wb') as file:
        yield file
    os.replace(beside, path)
