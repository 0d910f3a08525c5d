import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stepnet_mm.stiffness import block_stiffness, total_neural_stiffness

INF, NAN = math.inf, math.nan
quick = settings(database=None, deadline=None, max_examples=20)


ANY = st.floats(0, 100)


@st.composite
def measured(draw, values=ANY):
    """NSI (N, L) and stage (L,)."""
    stage = draw(st.lists(st.integers(1, 3), min_size=1, max_size=7))
    row = st.lists(values, min_size=len(stage), max_size=len(stage))
    nsi = draw(st.lists(row, min_size=1, max_size=4))
    return torch.tensor(nsi, dtype=torch.float64), torch.tensor(stage)


@pytest.mark.parametrize('nsi, stage, areas', [
    ([1, 3], [1, 1], [0, .5 * 3]),
    ([1, 3, 0, 2], [1, 1, 2, 2], [0, .5 * 3, 0, 1 * 2]),
    ([0, 3, 3], [1, 1, 1], [0, .5 * 3, .5 * 3]),
    ([0, 1, 0, 3, 50], [2, 1, 2, 1, 3], [0, 0, 0, .5 * 3, 0]),
    ([2, 2], [1, 1], [0, 0]),
    ([0, 0, 1], [1, 1, 2], [0, 0, 0]),
])
def test_rectangles_by_hand(nsi, stage, areas):
    assert block_stiffness([nsi], stage).tolist() == [areas]


@settings(quick, max_examples=10)
@given(measured(values=st.integers(0, 6)))
def test_closed_form_equals_a_fine_grid(sample):
    nsi, stage = sample
    width, cells = 7., 400
    middles = width * (torch.arange(cells).double() + .5) / cells
    m1, m2 = middles[:, None], middles[None]
    areas = block_stiffness(nsi, stage)
    for row, found in zip(nsi, areas):
        for value, label, area in zip(row, stage, found):
            mu = row[stage == label].mean()
            inside = value >= torch.maximum(mu * (1 + m1), m2)
            assert area.item() == pytest.approx(
                inside.double().mean().item() * width**2,
                rel=0, abs=2 * width**2 / cells)


@quick
@given(measured())
def test_tns_lies_between_the_largest_and_the_sum(sample):
    areas, tns = block_stiffness(*sample), total_neural_stiffness(*sample)
    slack = 1e-9 * (1 + tns)
    assert (areas.amax(1) <= tns + slack).all()
    assert (tns <= areas.sum(1) + slack).all()
    nsi, one = sample[0], torch.ones_like(sample[1])
    torch.testing.assert_close(
        block_stiffness(nsi, one).amax(1), total_neural_stiffness(nsi, one))


@pytest.mark.parametrize('bad', [INF, NAN])
def test_a_sample_that_is_not_finite(bad):
    nsi = torch.tensor([[1., 3., 2.], [1., bad, 2.]])
    areas = block_stiffness(nsi, [1, 1, 2])
    assert areas.tolist() == [[0., 1.5, 0.], [INF, INF, INF]]


def test_rounding_makes_no_area():
    # The rounded mean of three times .1 is above .1.
    assert block_stiffness([[.1, .1, .1]], [1, 1, 1]).tolist() == [[0., 0, 0]]
    assert block_stiffness(torch.zeros(0, 2), [1, 1]).shape == (0, 2)


@pytest.mark.parametrize('nsi, stage, match', [
    (torch.zeros(2, 3), [1, 1], 'nsi, stage: '),
    (torch.zeros(2, 0), [], 'nsi, stage: '),
    ([[1., -2.]], [1, 1], 'nsi: .*-2'),
])
def test_bad_input_is_named(nsi, stage, match):
    with pytest.raises(ValueError, match=match):
        block_stiffness(nsi, stage)
