"""docs/compatibility.md: each statement has a test, each new name is there.

That the tests are there, tests/test_docs.py looks.
"""
import pkgutil
import re
from pathlib import Path

import pytest

from stepnet_mm.moved import GONE

pytestmark = pytest.mark.core

PAGE = (Path(__file__).resolve().parents[1]
        / 'docs/compatibility.md').read_text()
SECTIONS = dict(re.findall(
    r'^## ([^\n]*)\n(.*?)(?=^## |\Z)', PAGE, re.M | re.S))
NAMES = 'Names that have no alias'


def rows(text):
    """The cells of its tables, without their heads."""
    lines = re.findall(r'^\| (.*) \|$', text, re.M)
    return [line.split(' | ') for line in lines
            if not line.startswith(('of 0.1', 'what | ', 'name of', ' | '))
            and line != '| held by']


HELD = [row for title, text in SECTIONS.items() if title != NAMES
        for row in rows(text)]
TODAY = [name for _, cell in rows(SECTIONS[NAMES])
         for name in re.findall(r'`(\w+\.[\w.]+)`', cell)]


def test_every_statement_names_its_test():
    assert len(HELD) > 25
    assert not [row for row in HELD if row[-1] != 'the same'
                and not re.search(r'`(tests/|\.ci/run)', row[-1])]


def test_the_tables_are_whole():
    assert {*map(len, HELD)} == {2, 3, 6}
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
