"""Numbers and texts are those on file: tests/goldens.py."""
import re
from pathlib import Path

import pytest
from by_path import load

pytest.importorskip('mmdet')
pytest.importorskip('mmpretrain')

GOLDENS = load(Path(__file__).with_name('goldens.py'))


@pytest.fixture(scope='module')
def accepted():
    return GOLDENS.read()


@pytest.mark.core
@pytest.mark.parametrize('part', GOLDENS.PARTS)
def test_nothing_has_changed(part, accepted):
    reason = GOLDENS.why_not(part)
    if reason:
        pytest.skip(reason)
    texts = GOLDENS.compare(part, GOLDENS.find(part), accepted)
    assert not texts, '\n'.join([*texts, GOLDENS.MEANT])


@pytest.mark.parametrize('got, text', [
    ({'steps/x': [1., 2.00001]}, r"x: expected \[1.0, 2.0\], got \[1.0, 2.0"),
    ({'steps/x': [1.]}, r'got \[1.0\]'), ({}, r'got None'),
    ({'steps/new': 1.}, 'new: expected None, got 1.0'),
    ({'steps/a': 'type=2\n'}, r'a:\n.*\n-type=1\n\+type=2')])
def test_a_difference_says_what_is_expected(got, text):
    accepted = {'steps/x': [1., 2.], 'steps/a': 'type=1\n'}
    found = GOLDENS.compare('steps', got.items(), accepted)
    assert re.search(text, found[0], re.DOTALL)
