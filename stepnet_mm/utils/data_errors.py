"""Errors of datasets, which say the loader, the file and what to check."""
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any

from mmengine.fileio import load

from .error_origin import functions_in


class DataError(ValueError):
    """A dataset cannot be built, or a sample cannot be loaded."""


@contextmanager
def data_errors(key: str, within: str = '') -> Iterator[None]:
    """Raise an error of this block again, with the loader and the file.

    Only for where nobody catches the error, for it becomes a
    :class:`DataError`: any, or one that went through a function ``within``.
    ``key`` is the loader's in the config.
    """
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # of anybody's dataset
        if within and within not in functions_in(error):
            raise
        raise DataError(in_a_line(f'{key}: {_said(error)}')) from error


def name_samples(loader, key: str) -> None:
    """Have the errors of an evaluation's samples name key and file.

    The dataset gets a ``__getitems__``, which torch prefers;
    :class:`.SeededSamples` does not.
    """
    dataset = loader.dataset
    batch = getattr(dataset, '__getitems__', None)
    known = getattr(batch, 'func', None) is _samples
    if hasattr(dataset, '__dict__') and not known:
        dataset.__getitems__ = partial(_samples, dataset, batch, key)


def _samples(dataset, batch, key: str, indices: list) -> list:
    with data_errors(key):
        return (batch(indices) if batch
                else [dataset[index] for index in indices])


def in_a_line(text: str) -> str:
    """Text with file names, which may be no UTF-8 or have a newline."""
    return ''.join(letter if letter.isprintable() else repr(letter)[1:-1]
                   for letter in text)


def _said(error: Exception) -> str:
    rows = [*traceback.walk_tb(error.__traceback__)]
    frames = [frame for frame, _ in reversed(rows)]
    owners = (frame.f_locals.get('self') for frame in frames)
    dataset: Any = next(
        (owner for owner in owners if hasattr(owner, 'ann_file')), None)
    with suppress(Exception):  # a dataset may hold anything
        if {'full_init'} == {'full_init', 'load_data_list'} & functions_in(
                error) and not dataset.data_list:
            return _why_empty(dataset)
    files = [*filter(None, map(_file_in, frames))][:1]
    ann_file = getattr(dataset, 'ann_file', '')
    if ann_file and ann_file not in files:
        files.append(f'ann_file {ann_file}')
    said = ' '.join(str(error).split())
    return (f'expected data without errors, got {type(error).__name__} in '
            f'{frames[0].f_code.co_name}: {said}; check '
            f'{", ".join([*files, "data_prefix and pipeline"])}')


def _file_in(frame: FrameType) -> str:
    """The file that a function was called for, '' if it was for none."""
    code = frame.f_code
    # Not from other variables: they may be of an earlier file.
    for name in code.co_varnames[:code.co_argcount]:
        value = frame.f_locals.get(name)
        for path in value.values() if isinstance(value, dict) else [value]:
            if isinstance(path, str) and os.path.isfile(path):
                return path
    return ''


def _why_empty(dataset) -> str:
    """What filtered all samples out; stock fails with a NumPy error."""
    rows = dataset.load_data_list()
    used = sum(1 for row in rows if row.get('instances'))
    sizes = [(row.get('width'), row.get('height')) for row in rows]
    classes = f'{dataset.metainfo.get("classes")}'
    if hasattr(dataset, 'cat_ids'):  # of COCO
        names = [row['name'] for row in load(dataset.ann_file)['categories']]
        classes += f', while the file has {names}'
    return (f'expected samples, got none of the {len(rows)} in ann_file '
            f'{dataset.ann_file}: {used} have instances of metainfo.classes '
            f'{classes}; sizes {min(sizes, default=0)} to '
            f'{max(sizes, default=0)} px, filter_cfg {dataset.filter_cfg}; '
            'change these, or indices')
