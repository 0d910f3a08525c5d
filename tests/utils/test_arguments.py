import math

import pytest

from stepnet_mm.utils.arguments import check_count, check_seconds


def test_counts_and_seconds_pass():
    check_count('a.b', 0)
    check_count('a.b', 1, 1)
    check_seconds('a.b', 300)
    check_seconds('a.b', .5)


@pytest.mark.parametrize('value', [0, -1, math.nan, math.inf, '3', None, True])
def test_others_are_named(value):
    with pytest.raises(ValueError, match='a.b: expected a number of sec'):
        check_seconds('a.b', value)
    with pytest.raises(ValueError, match='a.b: expected an integer of at '
                       f'least 1, got {value!r}'):
        check_count('a.b', value, 1)
