import math

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from made_records import make_record

from stepnet_mm.stiffness import (
    block_stiffness,
    stage_summary,
    stiff_blocks,
    stiffness_proportion,
    stiffness_survival,
    summarize_stiffness,
    summarize_tns,
    total_neural_stiffness,
)

INF, NAN = math.inf, math.nan
M1 = [0., .25, .5, 1., 4.]
M2 = [0., 1., 2.5, 3., 7.]
quick = settings(database=None, deadline=None, max_examples=25)
TABLES = stiffness_survival, stiffness_proportion


@st.composite
def measured(draw):
    """NSI (N, L) and stage (L,); whole numbers, so that ties are common."""
    stage = draw(st.lists(st.integers(1, 4), min_size=1, max_size=7))
    row = st.lists(st.integers(0, 6), min_size=len(stage), max_size=len(stage))
    nsi = draw(st.lists(row, min_size=1, max_size=4))
    return torch.tensor(nsi, dtype=torch.float64), torch.tensor(stage)


def literal_marks(row, stage, m1, m2):
    """Whether each block of a sample meets Eq. 5's inequality."""
    marks = []
    for nsi, label in zip(row, stage):
        same = [other for other, s in zip(row, stage) if s == label]
        mu = sum(same) / len(same)
        marks.append(nsi >= max(mu * (1 + m1), m2))
    return marks


@quick
@given(measured())
def test_the_tables_equal_the_literal_loop(sample):
    nsi, stage = (values.tolist() for values in sample)
    for function, share in zip(TABLES, (
            any, lambda marks: sum(marks) / len(marks))):
        expected = torch.tensor([[
            sum(share(literal_marks(row, stage, m1, m2))
                for row in nsi) / len(nsi) for m2 in M2
        ] for m1 in M1]).double()
        torch.testing.assert_close(
            function(*sample, M1, M2), expected, rtol=0, atol=1e-6)


@settings(quick, max_examples=15)
@given(measured())
def test_closed_form_equals_a_fine_grid(sample):
    width, height, cells = 7., 7., 200
    middles = (torch.arange(cells).double() + .5) / cells
    survival = stiffness_survival(*sample, width * middles, height * middles)
    cell = (width / cells) * (height / cells)
    # A falling edge crosses at most one cell in each row and column.
    assert total_neural_stiffness(*sample).mean().item() == pytest.approx(
        survival.sum().item() * cell, rel=0, abs=2 * cells * cell)


@pytest.mark.parametrize('nsi, stage, areas, union', [
    ([1, 3, 2, 6], [1, 1, 2, 2], [0, .5 * 3, 0, .5 * 6], .5 * 6),
    ([0, 2, 1, 1.5], [1, 1, 2, 2], [0, 1 * 2, 0, .2 * 1.5], 2.),
    ([0, 3, 3], [1, 1, 1], [0, .5 * 3, .5 * 3], 1.5),
    ([1, 3, 0, 2, 0, 0, 1], [1, 1, 2, 2, 3, 3, 3],
     [0, .5 * 3, 0, 1 * 2, 0, 0, 2 * 1], .5 * 3 + .5 * 2 + 1. * 1),
    # Stages of one block, of equal ones and of zeros have no area.
    ([0, 1, 0, 3, 50, 7, 7], [2, 1, 2, 1, 3, 4, 4],
     [0, 0, 0, .5 * 3, 0, 0, 0], 1.5)])
def test_rectangles_and_their_union_by_hand(nsi, stage, areas, union):
    assert block_stiffness([nsi], stage)[0].tolist() == pytest.approx(areas)
    assert total_neural_stiffness([nsi], stage).item() == pytest.approx(union)


@quick
@given(st.floats(1e-3, 1e3), st.integers(1, 9))
@example(.1, 3)  # the rounded mean is above the maximum
@example(1.5508077563657707, 1)  # its float32 is below it
def test_equal_blocks_have_no_tns_and_meet_their_mean(value, length):
    nsi, stage = [[value] * length], [1] * length
    for function in (total_neural_stiffness, block_stiffness):
        assert function(nsi, stage).max().item() == pytest.approx(
            0, abs=1e-12 * value)
    for function in TABLES:
        assert function(nsi, stage, [0.], [value]).item() == 1


@pytest.mark.parametrize('bad', [INF, NAN])
def test_samples_that_are_not_finite(bad):
    nsi = torch.tensor([[1., 3.], [1., bad], [0., 4.]])
    good = nsi[[0, 2]]
    assert total_neural_stiffness(nsi, [1, 1]).tolist() == [1.5, INF, 4.]
    assert block_stiffness(nsi, [1, 1]).tolist() == [
        [0, 1.5], [INF, INF], [0, 4]]
    assert stage_summary(nsi, [1, 1]).finite.tolist() == [True, False, True]
    assert stiff_blocks(nsi, [1, 1], 0., 0.).tolist() == [
        [False, True], [False, False], [False, True]]
    for function in TABLES:
        assert torch.equal(
            function(nsi, [1, 1], M1, M2), function(good, [1, 1], M1, M2))
        assert function(nsi[1:2], [1, 1], [0.], [0.]).isnan().all()


@pytest.mark.parametrize('nsi, m1, m2, match', [
    (torch.zeros(2, 3), [0.], [0.], 'nsi, stage: '),
    ([[1., -1.]], [0.], [0.], 'nsi: .*-1'),
    ([[1., 2.]], [-.1], [0.], 'm1: '), ([[1., 2.]], [0.], [NAN], 'm2: ')])
def test_wrong_arguments_are_named(nsi, m1, m2, match):
    with pytest.raises(ValueError, match=match):
        stiffness_proportion(nsi, [1, 1], m1, m2)


STAGE = torch.tensor([1, 1, 2])


def test_what_is_logged_are_means_over_the_finite_samples():
    """The goldens have the numbers of four networks."""
    nsi = torch.rand(7, 3, dtype=torch.float64)
    nsi[5, 0], nsi[6, 2] = INF, NAN
    found, nsi = summarize_stiffness(nsi, STAGE, 'abc'), nsi[:5]
    tns = total_neural_stiffness(nsi, STAGE).numpy()
    assert [found[key] for key in ('tns', 'tns_median', 'tns_q95', 'nsi/b')
            ] == pytest.approx([np.mean(tns), np.median(tns),
                                np.quantile(tns, .95), nsi[:, 1].mean()])
    assert found == {**summarize_stiffness(nsi, STAGE, 'abc'), 'nonfinite': 2}
    for rows in (0, 3):
        assert summarize_stiffness(
            torch.full((rows, 3), INF), STAGE) == {'nonfinite': rows}
    assert all(map(math.isnan, summarize_tns(torch.zeros(0)).values()))


def test_the_summary_by_block():
    """Of six samples, the first not finite; the last block has no gate."""
    record = make_record((2, 1), 6, bad=1, gates=[True, True, False])
    assert record.nonfinite == record.summary()['nonfinite'] == 1
    rows, nsi = record.summary_by_block(), record.nsi[1:]
    assert torch.equal(record.tns(), total_neural_stiffness(nsi, STAGE))
    means = torch.stack([nsi[:, STAGE == s].mean(1) for s in STAGE], 1)
    for i, row in enumerate(rows):
        bar = means[:, i] * 1.5
        assert row['stiff'] == (nsi[:, i] >= bar).double().mean()
        area = (nsi[:, i] / means[:, i] - 1).clamp(min=0) * nsi[:, i]
        assert row['area'] == pytest.approx(area.mean().item())
        assert row['mean'] == pytest.approx(nsi[:, i].mean().item())
    assert rows[0]['step'] == pytest.approx(record.step[1:, 0].mean().item())
    assert math.isnan(rows[2]['step'])
    assert (rows[1]['block'], rows[1]['stage'], rows[1]['position']) == (
        'layer1.2', 1, 2)
