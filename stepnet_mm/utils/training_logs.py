"""The starts of a training, each of which logs into a folder of its own."""
from collections.abc import Iterator
from pathlib import Path

from .files import parse_line


def log_folders(work_dir) -> list[Path]:
    """The log folders of a work dir, by name, which is a start's time."""
    return sorted(Path(work_dir).glob('*/'))


def logged(work_dir, name: str) -> Iterator[list[dict]]:
    """The lines of ``vis_data/<name>.json``, of each start in turn.

    Others than JSON objects are passed over, such as one that a kill cut.
    """
    for folder in log_folders(work_dir):
        path = folder / 'vis_data' / f'{name}.json'
        if path.is_file():
            yield [*filter(None, map(
                parse_line, path.read_bytes().splitlines()))]
