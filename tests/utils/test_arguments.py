import math

import pytest

from stepnet_mm.utils.arguments import check_count, check_seconds

pytestmark = pytest.mark.core


@pytest.mark.parametrize('value, least', [(0, 0), (1, 1), (10**6, 1)])
def test_counts_pass(value, least):
    check_count('a.b', value, least)


@pytest.mark.parametrize('value', [0, -1, 1., '1', None, True])
def test_other_counts_are_named(value):
    with pytest.raises(ValueError, match='a.b: expected an integer of at '
                       f'least 1, got {value!r}; do this'):
        check_count('a.b', value, 1, 'do this')


def test_seconds():
    check_seconds('a.b', 300)
    check_seconds('a.b', .5)
    for value in (0, -1, math.nan, math.inf, '3', None, True):
        with pytest.raises(ValueError, match='a.b: expected a number of sec'):
            check_seconds('a.b', value)
