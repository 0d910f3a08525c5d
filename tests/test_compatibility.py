"""docs/compatibility.md: each statement has a test, and all tests are there.

That the tests are there, tests/test_docs.py looks.
"""
import re
from pathlib import Path

import pytest

from stepnet_mm.moved import GONE, OLD_NAMES

pytestmark = pytest.mark.core

PAGE = (Path(__file__).resolve().parents[1]
        / 'docs/compatibility.md').read_text()
ROWS = [line.strip('| ').split(' | ') for line in PAGE.splitlines()
        if line.startswith('| ') and 'held by' not in line]


def test_every_statement_names_its_test():
    assert len(ROWS) > 25
    assert not [row for row in ROWS if row[-1] != 'the same'
                and not re.search(r'`(tests/|\.ci/run)', row[-1])]


def test_the_tables_are_whole():
    widths = [len(row) for row in ROWS]
    assert {*widths} == {2, 3, 6} and all(map(all, ROWS))


@pytest.mark.parametrize('old', [
    *(f'.{name}' for name in GONE), 'stiffness.read_record',
    'attention.read_attention', 'optional', 'ie_weight'])
def test_old_names_are_on_the_page(old):
    assert old in PAGE


def test_a_renamed_name_is_on_the_page_by_its_new_one():
    new = {name.rpartition('.')[2] for name in OLD_NAMES['attention'].values()}
    assert any(name in PAGE for name in new)
