import math

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stepnet_mm.stiffness import (
    stage_summary,
    stiff_blocks,
    stiffness_proportion,
    stiffness_survival,
    total_neural_stiffness,
)

pytestmark = pytest.mark.core

INF, NAN = math.inf, math.nan
M1 = [0., .2, .25, .5, 1., 1.5, 2., 4.]
M2 = [0., 1., 2., 2.5, 3., 5., 7.]
quick = settings(database=None, deadline=None, max_examples=50)


WHOLE = st.integers(0, 6)


@st.composite
def measured(draw, values=WHOLE):
    """NSI (N, L) and stage (L,); whole numbers, so that ties are common."""
    stage = draw(st.lists(st.integers(1, 4), min_size=1, max_size=7))
    row = st.lists(values, min_size=len(stage), max_size=len(stage))
    nsi = draw(st.lists(row, min_size=1, max_size=4))
    return torch.tensor(nsi, dtype=torch.float64), torch.tensor(stage)


positive = st.floats(1e-3, 1e3)


def literal_marks(row, stage, m1, m2):
    """Whether each block of a sample meets Eq. 5's inequality."""
    marks = []
    for nsi, label in zip(row, stage):
        same = [other for other, s in zip(row, stage) if s == label]
        mu = sum(same) / len(same)
        marks.append(nsi >= max(mu * (1 + m1), m2))
    return marks


def literal_table(nsi, stage, share):
    """Mean of share(marks) over the samples, by threshold."""
    rows, stage = nsi.tolist(), stage.tolist()
    return torch.tensor([[
        sum(share(literal_marks(row, stage, m1, m2))
            for row in rows) / len(rows) for m2 in M2
    ] for m1 in M1]).double()


@quick
@given(measured())
def test_survival_equals_the_literal_loop(sample):
    expected = literal_table(*sample, share=any)
    torch.testing.assert_close(
        stiffness_survival(*sample, M1, M2), expected, rtol=0, atol=1e-6)


@quick
@given(measured())
def test_proportion_equals_the_literal_loop(sample):
    expected = literal_table(
        *sample, share=lambda marks: sum(marks) / len(marks))
    torch.testing.assert_close(
        stiffness_proportion(*sample, M1, M2), expected, rtol=0, atol=1e-6)


@settings(quick, max_examples=25)
@given(measured())
def test_closed_form_equals_a_fine_grid(sample):
    width, height, cells = 7., 7., 300
    middles = (torch.arange(cells).double() + .5) / cells
    survival = stiffness_survival(*sample, width * middles, height * middles)
    cell = (width / cells) * (height / cells)
    # A falling edge crosses at most one cell in each row and column.
    assert total_neural_stiffness(*sample).mean().item() == pytest.approx(
        survival.sum().item() * cell, rel=0, abs=2 * cells * cell)


@quick
@given(measured(values=st.floats(0, 100)))
def test_survival_falls_with_both_thresholds(sample):
    survival = stiffness_survival(*sample, sorted(M1), sorted(M2))
    assert (survival.diff(dim=0) <= 0).all()
    assert (survival.diff(dim=1) <= 0).all()
    assert survival[0, 0] == 1


@pytest.mark.parametrize('nsi, stage, area', [
    ([1, 3], [1, 1], 1.5),
    ([1, 3, 0, 2], [1, 1, 2, 2], .5 * 3 + .5 * 2),
    ([0, 2, 1, 3], [1, 1, 2, 2], .5 * 3 + .5 * 2),
    ([1, 3, 2, 6], [1, 1, 2, 2], .5 * 6),
    ([0, 2, 1, 1.5], [1, 1, 2, 2], 2.),
    ([1, 3, 0, 2, 0, 0, 1], [1, 1, 2, 2, 3, 3, 3], .5 * 3 + .5 * 2 + 1. * 1),
])
def test_union_of_rectangles_by_hand(nsi, stage, area):
    assert total_neural_stiffness([nsi], stage).item() == pytest.approx(area)


def test_tns_is_for_each_sample():
    nsi = torch.tensor([[1., 3.], [2., 2.], [0., 4.]])
    assert total_neural_stiffness(nsi, [1, 1]).tolist() == [1.5, 0., 4.]


@quick
@given(st.lists(positive, min_size=1, max_size=6))
def test_single_block_stages_have_no_tns(row):
    stage = torch.arange(len(row))
    assert total_neural_stiffness([row], stage).item() == 0


@quick
@given(positive, st.integers(1, 9))
@example(.1, 3)  # the rounded mean is above the maximum
def test_equal_blocks_have_no_tns_and_meet_their_mean(value, length):
    nsi = torch.full((1, length), value, dtype=torch.float64)
    stage = [1] * length
    assert total_neural_stiffness(nsi, stage).item() == pytest.approx(
        0, abs=1e-12 * value)
    for function in (stiffness_survival, stiffness_proportion):
        assert function(nsi, stage, [0.], [value]).item() == 1


def test_a_stage_of_zeros_has_no_area_and_meets_the_threshold_zero():
    nsi, stage = torch.zeros(1, 3), [1, 1, 1]
    assert total_neural_stiffness(nsi, stage).item() == 0
    expected = [[1., 0.], [1., 0.]]
    for function in (stiffness_survival, stiffness_proportion):
        assert function(nsi, stage, [0., 9.], [0., 1e-9]).tolist() == expected


def test_idle_stages_do_not_change_tns():
    alone = total_neural_stiffness([[1., 3.]], [1, 1])
    beside = total_neural_stiffness([[0., 1., 0., 3., 50., 7., 7.]],
                                    [2, 1, 2, 1, 3, 4, 4])
    assert torch.equal(alone, beside)


@pytest.mark.parametrize('bad', [INF, NAN])
def test_samples_that_are_not_finite(bad):
    nsi = torch.tensor([[1., 3.], [1., bad], [0., 4.]])
    good = nsi[[0, 2]]
    tns = total_neural_stiffness(nsi, [1, 1])
    assert tns.tolist() == [1.5, INF, 4.]
    assert stage_summary(nsi, [1, 1]).finite.tolist() == [True, False, True]
    for function in (stiffness_survival, stiffness_proportion):
        assert torch.equal(
            function(nsi, [1, 1], M1, M2), function(good, [1, 1], M1, M2))


@quick
@given(
    measured(values=st.one_of(st.floats(0), st.sampled_from([INF, NAN, 0.]))))
def test_tns_is_never_nan_and_never_negative(sample):
    assert (total_neural_stiffness(*sample) >= 0).all()


@quick
@given(measured(values=st.floats(0, 100)), st.randoms())
def test_order_of_samples_does_not_matter(sample, random):
    nsi, stage = sample
    order = random.sample(range(len(nsi)), len(nsi))
    assert torch.equal(
        total_neural_stiffness(nsi[order], stage),
        total_neural_stiffness(nsi, stage)[order])
    torch.testing.assert_close(
        stiffness_survival(nsi[order], stage, M1, M2),
        stiffness_survival(nsi, stage, M1, M2))


@quick
@given(measured(), st.randoms())
def test_order_of_blocks_does_not_matter(sample, random):
    nsi, stage = sample
    order = random.sample(range(len(stage)), len(stage))
    torch.testing.assert_close(
        total_neural_stiffness(nsi[:, order], stage[order]),
        total_neural_stiffness(nsi, stage))
    for function in (stiffness_survival, stiffness_proportion):
        assert torch.equal(
            function(nsi[:, order], stage[order], M1, M2),
            function(nsi, stage, M1, M2))


@quick
@given(measured(), st.permutations([7, -1, 0, 30]))
def test_names_of_stages_do_not_matter(sample, names):
    nsi, stage = sample
    renamed = torch.tensor(names)[stage - 1]
    assert torch.equal(
        total_neural_stiffness(nsi, renamed),
        total_neural_stiffness(nsi, stage))


@quick
@given(measured(values=st.floats(0, 100)), positive)
def test_tns_scales_with_nsi(sample, scale):
    nsi, stage = sample
    torch.testing.assert_close(
        total_neural_stiffness(scale * nsi, stage),
        scale * total_neural_stiffness(nsi, stage),
        rtol=1e-9,
        atol=1e-11 * scale)


@quick
@given(measured())
def test_stage_summary_equals_a_loop(sample):
    nsi, stage = sample
    summary = stage_summary(nsi, stage)
    assert summary.stages.tolist() == sorted(set(stage.tolist()))
    for row, means, highest in zip(nsi.tolist(), summary.mean.tolist(),
                                   summary.maximum.tolist()):
        for s, mean, top in zip(summary.stages, means, highest):
            same = [v for v, other in zip(row, stage) if other == s]
            assert (mean, top) == (sum(same) / len(same), max(same))


def test_float32_and_lists_give_float64():
    nsi = torch.tensor([[1., 3.]])
    for given_nsi in (nsi, nsi.int(), [[1, 3]]):
        assert total_neural_stiffness(given_nsi, [1, 1]).dtype == torch.float64


def test_no_sample():
    assert total_neural_stiffness(torch.zeros(0, 2), [1, 1]).shape == (0, )


def test_shape_of_the_tables():
    nsi = torch.rand(3, 4)
    for function in (stiffness_survival, stiffness_proportion):
        table = function(nsi, [1, 1, 2, 2], torch.rand(5), torch.rand(2))
        assert table.shape == (5, 2)


EVERY = [
    total_neural_stiffness, stage_summary,
    lambda nsi, stage: stiffness_survival(nsi, stage, [0.], [0.]),
    lambda nsi, stage: stiffness_proportion(nsi, stage, [0.], [0.])
]


@pytest.mark.parametrize('function', EVERY)
@pytest.mark.parametrize('nsi, stage', [
    (torch.zeros(2, 3), [1, 1]),
    (torch.zeros(3), [1, 1, 1]),
    (torch.zeros(2, 3), [[1, 1, 1]]),
    (torch.zeros(2, 0), []),
])
def test_wrong_shapes_are_named(function, nsi, stage):
    with pytest.raises(ValueError, match='nsi, stage: '):
        function(nsi, stage)


@pytest.mark.parametrize('function', EVERY)
@pytest.mark.parametrize('value', [-1., -INF])
def test_a_negative_nsi_is_named(function, value):
    with pytest.raises(ValueError, match=f'nsi: .*{value}'):
        function([[1., value]], [1, 1])


@pytest.mark.parametrize('function',
                         [stiffness_survival, stiffness_proportion])
@pytest.mark.parametrize('bad', [[-.1], [NAN], 0., [[0.]], []])
def test_wrong_thresholds_are_named(function, bad):
    with pytest.raises(ValueError, match='m1: '):
        function([[1., 2.]], [1, 1], bad, [0.])
    with pytest.raises(ValueError, match='m2: '):
        function([[1., 2.]], [1, 1], [0.], bad)


@pytest.mark.parametrize('function',
                         [stiffness_survival, stiffness_proportion])
@pytest.mark.parametrize('nsi', [[[1., INF]], torch.zeros(0, 2)])
def test_no_finite_sample_is_an_error(function, nsi):
    with pytest.raises(ValueError, match='nsi: .*at least one sample'):
        function(nsi, [1, 1], [0.], [0.])


def test_a_list_keeps_its_float64():
    value = 1.5508077563657707
    assert stiffness_survival([[value]], [1], [0.], [value]) == 1


@pytest.mark.parametrize('m1, m2, name', [
    (-1, 0, 'm1'), (NAN, 0, 'm1'), (0, -.5, 'm2'), (0, NAN, 'm2')])
def test_stiff_blocks_refuses_what_is_no_threshold(m1, m2, name):
    with pytest.raises(ValueError, match=f'{name}: expected .* >= 0, got'):
        stiff_blocks([[1., 2., 3.]], [1, 1, 1], m1, m2)
