"""Numbers and texts are those on file: tests/goldens.py."""
from pathlib import Path

import pytest
from by_path import load

GOLDENS = load(Path(__file__).with_name('goldens.py'))


@pytest.mark.core
@pytest.mark.parametrize('part', GOLDENS.PARTS)
def test_nothing_has_changed(part):
    if reason := GOLDENS.why_not(part):
        pytest.skip(reason)
    texts = GOLDENS.compare(part, GOLDENS.find(part), GOLDENS.read())
    assert not texts, '\n'.join([*texts, GOLDENS.MEANT])


@pytest.mark.parametrize('got', [
    {'steps/x': [1., 2.00001]}, {}, {'steps/x': [1., 2.], 'steps/new': 1.}])
def test_a_difference_is_found(got):
    assert GOLDENS.compare('steps', got.items(), {'steps/x': [1., 2.]})
