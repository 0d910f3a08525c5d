"""docs/compatibility.md: every statement has a test, a new name is there.

That the tests are there, tests/test_docs.py looks.
"""
import pkgutil
import re
from pathlib import Path

import pytest

from stepnet_mm import __version__
from stepnet_mm.moved import GONE, _warn

pytestmark = pytest.mark.core

PAGE = (Path(__file__).resolve().parents[1]
        / 'docs/compatibility.md').read_text()
SECTIONS = dict(re.findall(
    r'^## ([^\n]*)\n(.*?)(?=^## |\Z)', PAGE, re.M | re.S))
NAMES = 'Names that have no alias'


def rows(text):
    """The cells of its tables, without their heads."""
    tables = re.findall(r'^\|[- |]+\|\n((?:\| .* \|\n)+)', text, re.M)
    return [line.strip('| ').split(' | ')
            for lines in tables for line in lines.splitlines()]


HELD = [row for title, text in SECTIONS.items() if title != NAMES
        for row in rows(text)]
TODAY = [name for _, cell in rows(SECTIONS[NAMES])
         for name in re.findall(r'`(\w+\.[\w.]+)`', cell)]
TESTS = re.findall(r'^(\d+)\. `tests/.*`$', SECTIONS['The tests'], re.M)


def test_every_statement_has_its_tests_and_every_test_its_statement():
    assert len(HELD) > 25
    numbers = [re.findall(r'\b\d+\b', row[-1]) or row[-1] for row in HELD]
    assert all(isinstance(found, list) or '.ci/run' in found
               for found in numbers)
    assert {n for found in numbers if isinstance(found, list)
            for n in found} == {*TESTS}


def test_the_tables_are_whole():
    assert {*map(len, HELD)} == {2, 3, 5}
    assert all(map(all, [*HELD, *rows(SECTIONS[NAMES])]))


@pytest.mark.parametrize('name', TODAY)
def test_what_a_name_is_today_is_there(name):
    full = f'stepnet_mm.{name.removeprefix("stepnet_mm.")}'
    pkgutil.resolve_name(full)  # or an error


@pytest.mark.parametrize('old', [
    *(f'.{name}' for name in GONE), 'stiffness.read_record',
    'attention.read_attention', 'optional', 'ie_weight'])
def test_old_names_are_on_the_page(old):
    assert old in PAGE


def test_old_paths_go_with_the_next_major_version():
    with pytest.warns(DeprecationWarning, match=r'version 2\.0'):
        _warn('old', 'new', stacklevel=1)
    assert __version__.startswith('1.') and 'in all of 1.x' in PAGE
