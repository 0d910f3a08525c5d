"""Fig. 8, TNS by method, and Fig. 9, step size against NSI."""
import math

import numpy as np
import pytest
from made_records import make_record, named
from paper_figures import pearson, step_figure, tns_by_method, tns_figure
from scipy import stats

pytest.importorskip('matplotlib')


def test_a_method_of_one_record_has_an_interval_over_samples():
    record = named('SE', samples=50, bad=3)
    tns = record.tns().numpy()
    draws = np.random.default_rng(0).integers(47, size=(1000, 47))
    low, high = np.percentile(tns[draws].mean(1), [2.5, 97.5])
    mean, median, quantile = tns_by_method([record])['SE'].values()
    assert mean == pytest.approx((tns.mean(), low, high, []))
    assert median.value == np.median(tns)
    assert quantile.value == np.quantile(tns, .95)


def test_a_method_of_several_records_has_the_range_of_its_seeds():
    records = [named(f'SE_seed{i}', seed=i) for i in range(3)]
    rows = tns_by_method([*records, named('ECA'), named('ECA')])
    assert [*rows] == ['SE', 'ECA (1)', 'ECA (2)']
    totals = [record.tns_summary() for record in records]
    for key, found in rows['SE'].items():
        values = [total[key] for total in totals]
        assert found == pytest.approx(
            (np.mean(values), min(values), max(values), values))


def test_what_is_drawn_of_tns():
    records = [named('plain'),
               *(named(f'SE_seed{i}', seed=i, bad=2) for i in range(3))]
    figure = tns_figure(records)
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == [
        'plain', 'SE (3 seeds)']
    assert 'left out: SE_seed0: 2 of 40' in figure.get_suptitle()
    methods = tns_by_method(records)
    for axes, key in zip(figure.axes, ('tns', 'tns_median', 'tns_q95'),
                         strict=True):
        for y, row in enumerate(methods.values()):
            own = row[key]
            span, dot, seeds = axes.lines[3 * y:3 * y + 3]
            assert [*span.get_xdata()] == [own.low, own.high]
            assert dot.get_xydata().tolist() == [[own.value, y]]
            assert [*seeds.get_xdata()] == own.seeds


def test_a_constant_has_no_correlation():
    rounding = np.float32(.2689414) * (1 + 1e-7 * np.arange(5) % 2e-7)
    for constant in (np.zeros(5), rounding):
        assert np.isnan(pearson(np.arange(5.), constant))


def test_the_first_stage_with_enough_gates_is_drawn():
    gates = [False] * 3 + [True] * 2 + [False] + [True] * 5
    record = make_record((3, 3, 5), gates=gates, bad=1)
    record.step[1:3, 6:] = .2689
    record.step[3, 7] = math.nan
    figure = step_figure(record)
    *panels, histogram = figure.axes
    nsi, step = (np.delete(table, [0, 3], 0)
                 for table in (record.nsi.numpy(), record.step.numpy()))
    for axes, column in zip(panels, (6, 8, 10), strict=True):
        own = nsi[:, column], step[:, column]
        assert axes.collections[0].get_offsets().tolist() == np.stack(
            own, 1).tolist()
        r, rho = stats.pearsonr(*own)[0], stats.spearmanr(*own)[0]
        assert axes.get_title() == (
            f'layer3.{column - 5}\nPearson {r:+.2f}, Spearman {rho:+.2f}')
    assert '38 samples' in figure.get_suptitle()
    assert 'left out: 1 of 40' in figure.get_suptitle()
    r = [stats.pearsonr(*rows)[0]
         for rows in zip(nsi[2:, 6:], step[2:, 6:])]
    heights = [bar.get_height() for bar in histogram.patches]
    assert heights == np.histogram(r, 40, (-1, 1))[0].tolist()
    title = histogram.get_title()
    assert title.startswith('stage 3, 5 blocks: 36 samples (2 with constant')
    assert title.endswith(f'{np.median(r):+.2f}')


def test_without_a_correlation_along_depth():
    assert len(step_figure(make_record((1, 2))).axes) == 1
    record = make_record((3, ))
    record.step[:] = .2689
    assert [axes.get_title().split('\n')[1]
            for axes in step_figure(record).axes] == [
        'no correlation: constant values'] * 3


def test_records_without_step_sizes():
    with pytest.raises(ValueError, match='SE: .*known gate'):
        step_figure(make_record(gates=False))
