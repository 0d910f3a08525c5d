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


@pytest.mark.parametrize('order', ['lower', 'upper'])
def test_several_are_undone_in_any_order(counter, order):
    before = dict(vars(counter))
    lower = ReplacedMethod(counter, 'add', doubled)
    upper = ReplacedMethod(counter, 'add', lambda add, number: -add(number))
    assert counter.add(1) == -4
    assert type(counter)().add(1) == 2
    first, second = (lower, upper) if order == 'lower' else (upper, lower)
    first.undo()
    assert counter.add(1) == (-2 if order == 'lower' else 4)
    second.undo()
    assert counter.add(1) == 2
    assert vars(counter) == before
