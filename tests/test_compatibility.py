"""docs/compatibility.md: its names are there.

That the tests are there, tests/test_docs.py looks.
"""
import pkgutil
import re
from pathlib import Path

import pytest

from stepnet_mm import __version__
from stepnet_mm.moved import GONE, _warn

PAGE = (Path(__file__).resolve().parents[1]
        / 'docs/compatibility.md').read_text()
SECTIONS = dict(re.findall(
    r'^## ([^\n]*)\n(.*?)(?=^## |\Z)', PAGE, re.M | re.S))


def rows(text):
    """The cells of each row of its tables."""
    return [line.strip('| ').split(' | ') for line in text.splitlines()
            if line.startswith('| ')]


def test_what_a_name_is_today_is_there():
    names = [name for _, cell in rows(SECTIONS['Names that have no alias'])
             for name in re.findall(r'`(\w+\.[\w.]+)`', cell)]
    assert names
    for name in names:  # or an error
        pkgutil.resolve_name(
            f'stepnet_mm.{name.removeprefix("stepnet_mm.")}')


def test_old_folders_are_on_the_page_and_go_with_version_2():
    assert not [name for name in GONE if f'.{name}' not in PAGE]
    with pytest.warns(DeprecationWarning, match=r'version 2\.0'):
        _warn('old', 'new', stacklevel=1)
    assert __version__.startswith('1.')
