import random

import numpy as np
import pytest
import torch

from stepnet_mm.utils.random_state import (
    get_random_state,
    seeded,
    set_random_state,
)


def draws():
    return (random.random(), random.gauss(0, 1), np.random.rand(),
            np.random.randn(), torch.rand(1).item(), torch.randn(1).item())


@pytest.mark.core
def test_what_was_read_can_be_set(tmp_path):
    """After a weights-only load, too."""
    np.random.randn()  # leaves one of a pair behind, as random.gauss does
    random.gauss(0, 1)
    torch.save(get_random_state(), tmp_path / 'a')
    first = draws()
    assert draws() != first
    set_random_state(torch.load(tmp_path / 'a', weights_only=True))
    assert draws() == first


def test_seeded_gives_the_same_and_leaves_no_trace():
    """And goes on in a second block."""
    state, stream = get_random_state(), seeded(1, 2)
    with stream:
        first = draws()
    with pytest.raises(KeyError), seeded(1, 3):
        other = draws()
        raise KeyError
    with stream:
        second = draws()
    with seeded(1, 2):
        assert (draws(), draws()) == (first, second)
    assert not set(first) & set(other)
    after = draws()
    set_random_state(state)
    assert draws() == after
