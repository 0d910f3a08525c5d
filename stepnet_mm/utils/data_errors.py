"""Errors of datasets, which say the loader, the file and what to check."""
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from mmengine.fileio import load


class DataError(ValueError):
    """A dataset cannot be built, or a sample cannot be loaded."""


@contextmanager
def data_errors(key: str, part: str = 'sample') -> Iterator[None]:
    """Raise an error of this block again, with the loader and the file.

    Only for where nobody catches the error, for it gets another type.

    Args:
        key (str): the loader's in the config.
        part (str): what is made, ``'sample'`` or ``'dataset'``.

    Raises:
        DataError: from any error.
    """
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # of anybody's dataset
        raise DataError(in_a_line(f'{key}: {_said(error, part)}')) from error


def name_samples(loader, key: str) -> None:
    """Have the errors of a loader's samples name the loader and the file.

    Not for a training that resumes: a dataset that gives whole batches, as
    this one does from now on, is seeded once for each batch.

    Args:
        loader (DataLoader): its dataset gets a ``__getitems__``.
        key (str): the loader's in the config.
    """
    dataset = loader.dataset
    batch = getattr(dataset, '__getitems__', None)
    if hasattr(dataset, '__dict__') and not isinstance(batch, _NamedSamples):
        dataset.__getitems__ = _NamedSamples(dataset, batch, key)


class _NamedSamples:
    """The samples of indices, as torch asks for them; pickles."""

    def __init__(self, dataset, batch, key: str):
        self.dataset, self.batch, self.key = dataset, batch, key

    def __call__(self, indices: list) -> list:
        with data_errors(self.key):
            return (self.batch(indices) if self.batch
                    else [self.dataset[index] for index in indices])


def in_a_line(text: str) -> str:
    """Text with file names, which may be no UTF-8 or have a newline."""
    return ''.join(letter if letter.isprintable() else repr(letter)[1:-1]
                   for letter in text)


def _said(error: Exception, part: str) -> str:
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    names = [frame.f_code.co_name for frame in frames]
    dataset = _dataset_in(frames)
    if 'full_init' in names and 'load_data_list' not in names:
        with suppress(Exception):  # a dataset may hold anything
            return _why_empty(dataset)
    found = (_file_in(frame, part) for frame in reversed(frames))
    files = [*filter(None, found)][:1]
    ann_file = getattr(dataset, 'ann_file', '')
    if ann_file and ann_file not in files:
        files.append(f'ann_file {ann_file}')
    return (f'expected a {part} without errors, got '
            f'{type(error).__name__} in {names[-1]}: '
            f'{" ".join(str(error).split())}; check '
            f'{", ".join([*files, "data_prefix and pipeline"])}')


def _dataset_in(frames: list[FrameType]) -> Any:
    """The innermost dataset that was at work."""
    found = (frame.f_locals.get('self') for frame in reversed(frames))
    return next((part for part in found if hasattr(part, 'ann_file')), None)


def _file_in(frame: FrameType, part: str) -> str:
    """The file that a function was about, '' if its variables name none."""
    names = frame.f_code.co_varnames
    if part == 'dataset':  # arguments alone: others are of an earlier file
        names = names[:frame.f_code.co_argcount]
    for value in map(frame.f_locals.get, names):
        for path in value.values() if isinstance(value, dict) else [value]:
            if isinstance(path, str) and os.path.isfile(path):
                return path
    return ''


def _why_empty(dataset) -> str:
    """Why no sample is left, where stock cannot join none of them."""
    if len(dataset.data_list):
        raise ValueError
    rows = dataset.load_data_list()
    used = sum(1 for row in rows if row.get('instances'))
    sizes = [(row.get('width'), row.get('height')) for row in rows]
    return (f'expected samples, got none of the {len(rows)} in ann_file '
            f'{dataset.ann_file}: {used} have instances of metainfo.classes '
            f'{dataset.metainfo.get("classes")}{_categories(dataset)}; sizes '
            f'{min(sizes, default=0)} to {max(sizes, default=0)} px, '
            f'filter_cfg {dataset.filter_cfg}; change these, or indices')


def _categories(dataset) -> str:
    """The classes of a file in COCO's format."""
    if not hasattr(dataset, 'cat_ids'):
        return ''
    names = [row['name'] for row in load(dataset.ann_file)['categories']]
    return f', while the file has {names}'
