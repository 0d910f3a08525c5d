import pytest
from torch import nn

from stepnet_mm.utils.replaced_method import ReplacedMethod


class Counter:

    def add(self, number):
        return number + 1


@pytest.fixture(params=[Counter, type('Module', (Counter, nn.Module), {})])
def counter(request):
    return request.param()


def doubled(add, number):
    return 2 * add(number)


def test_it_is_called_with_the_method_until_it_is_undone(counter):
    before = dict(vars(counter))
    replaced = ReplacedMethod(counter, 'add', doubled)
    assert counter.add(1) == 4
    assert type(counter)().add(1) == 2
    replaced.undo()
    assert counter.add(1) == 2
    assert vars(counter) == before


def test_what_was_replaced_before_comes_back(counter):
    outer = ReplacedMethod(counter, 'add', lambda add, number: 10)
    inner = ReplacedMethod(counter, 'add', doubled)
    assert counter.add(1) == 20
    inner.undo()
    assert counter.add(1) == 10
    outer.undo()
    assert counter.add(1) == 2


def test_the_order_in_which_several_are_undone_does_not_matter(counter):
    before = dict(vars(counter))
    lower = ReplacedMethod(counter, 'add', doubled)
    upper = ReplacedMethod(counter, 'add', lambda add, number: -add(number))
    assert counter.add(1) == -4
    lower.undo()
    assert counter.add(1) == -2
    upper.undo()
    assert counter.add(1) == 2
    assert vars(counter) == before
