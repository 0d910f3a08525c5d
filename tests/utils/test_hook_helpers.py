import copy

import pytest
from torch import nn

from stepnet_mm.utils.hook_helpers import ReplacedMethod, check_count


@pytest.mark.parametrize('value', [0, '3', 1.5, True])
def test_what_is_no_count_is_named(value):
    check_count('a.b', 1, 1)
    with pytest.raises(ValueError, match=f'a.b: expected .* got {value!r}'):
        check_count('a.b', value, 1)


def test_a_copy_of_the_owner_has_its_own_method():
    counter = Counter()
    ReplacedMethod(counter, 'add', lambda add, number: 2 * add(number))
    copied = copy.deepcopy(counter)
    assert copied.add(1) == 2 and counter.add(1) == 4
    assert copied.add.__self__ is copied


class Counter(nn.Module):

    def add(self, number):
        return number + 1


@pytest.mark.parametrize('first, left', [(0, -2), (1, 4)])
def test_several_are_undone_in_any_order(first, left):
    counter = Counter()
    before = dict(vars(counter))
    replaced = [
        ReplacedMethod(counter, 'add', lambda add, number: 2 * add(number)),
        ReplacedMethod(counter, 'add', lambda add, number: -add(number))]
    assert counter.add(1) == -4 and Counter().add(1) == 2
    replaced.pop(first).undo()
    assert counter.add(1) == left
    replaced.pop().undo()
    assert counter.add(1) == 2 and vars(counter) == before
