"""Arguments of commands, checked at once, and tables that they print.

The types of arguments raise ``ArgumentTypeError``, as argparse expects.
"""
import os
import re
import sys
from argparse import (
    ArgumentParser,
    ArgumentTypeError,
    RawDescriptionHelpFormatter,
)
from collections.abc import Iterable, Sequence
from pathlib import Path


class _Parser(ArgumentParser):

    def parse_known_args(self, args=None, namespace=None):
        args = sys.argv[1:] if args is None else args
        return super().parse_known_args([*map(_at_home, args)], namespace)


def command_parser(description: str) -> ArgumentParser:
    """A parser whose help keeps the lines of a docstring.

    In an argument, or behind its ``=``, ``~`` is the home folder, as the shell
    leaves it there.
    """
    return _Parser(description=description,
                   formatter_class=RawDescriptionHelpFormatter)


def _at_home(text: str) -> str:
    return re.sub(r'(?<![^=])~[\w.-]*(?=/|$)',
                  lambda home: os.path.expanduser(home[0]), text, count=1)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells as lines: the first column left, the others right."""
    first, *others = (max(map(len, column)) for column in zip(*rows))
    return '\n'.join(
        '  '.join([name.ljust(first), *map(str.rjust, cells, others)])
        for name, *cells in rows)


def positive(text: str) -> int:
    """An argument that is an integer from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(
            f'expected a positive integer, got {text!r}; change it')
    return int(text)


def output_file(text: str) -> Path:
    """An argument that names a file to write, which may be there."""
    path = Path(text)
    if not text or path.is_dir():
        raise ArgumentTypeError(
            f'expected a file, got {text!r}, which is a folder; add a name')
    if path.exists():
        _check_writable(path)
    else:
        existing_folder(path.parent)
    return path


def existing_folder(folder: Path) -> Path:
    """A folder to write into, or the nearest one above it that exists."""
    there = next(path for path in (folder, *folder.parents)
                 if path.exists() or not path.name)
    if not there.is_dir():
        raise ArgumentTypeError(f'expected a folder, got {str(there)!r}, '
                                'which is a file; choose another')
    _check_writable(there)
    return there


def check_output(key: str, path, inputs: Iterable) -> None:
    """Refuse to write ``path``, given by option ``key``, onto an input.

    Raises:
        ValueError: if it is an input, by whatever name; URLs are none.
    """
    if not path or not os.path.exists(path):
        return
    for read in filter(None, inputs):
        if os.path.exists(read) and os.path.samefile(path, read):
            raise ValueError(f'{key}: expected a file that is not read, got '
                             f'{str(path)!r}, which is {str(read)!r}; name '
                             'another')


def _check_writable(path: Path) -> None:
    if not os.access(path, os.W_OK):
        raise ArgumentTypeError(
            f'expected a place to write, got {str(path)!r}, which is '
            'read-only; choose another')
