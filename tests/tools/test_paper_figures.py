"""Fig. 8, TNS by method, and Fig. 9, step size against NSI."""
import math

import numpy as np
import pytest
from made_records import make_record, named
from paper_figures import step_figure, tns_by_method, tns_figure
from scipy import stats


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
    records = [named(f'SE_seed{i}', seed=i, bad=2) for i in range(3)]
    methods = tns_by_method([*records, named('ECA'), named('ECA')])
    assert [*methods] == ['SE', 'ECA (1)', 'ECA (2)']
    totals = [record.tns_summary() for record in records]
    for key, found in methods['SE'].items():
        values = [total[key] for total in totals]
        assert found == pytest.approx(
            (np.mean(values), min(values), max(values), values))
    figure = tns_figure([*records, named('plain')])
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == [
        'SE (3 seeds)', 'plain']
    assert 'left out: SE_seed0: 2 of 40' in figure.get_suptitle()
    for axes, own in zip(figure.axes, methods['SE'].values(), strict=True):
        span, dot, seeds = axes.lines[:3]
        assert [*span.get_xdata()] == [own.low, own.high]
        assert dot.get_xydata().tolist() == [[own.value, 0]]
        assert [*seeds.get_xdata()] == own.seeds


def test_the_samples_of_three_blocks_with_a_gate():
    record = make_record((3, 3, 5), gates=[False] * 3 + [True] * 8, bad=1)
    # Equal up to the rounding of a float32 mean.
    record.step[:, 7] = .2689414 * (1 + 1e-7 * (record.nsi[:, 7] > .5))
    record.step[3, 7] = math.nan
    figure = step_figure(record)
    nsi, step = (np.delete(table, [0, 3], 0)
                 for table in (record.nsi.numpy(), record.step.numpy()))
    for axes, column in zip(figure.axes, (3, 7, 10), strict=True):
        own = nsi[:, column], step[:, column]
        assert axes.collections[0].get_offsets().tolist() == np.stack(
            own, 1).tolist()
        note = 'no correlation: constant values'
        if column != 7:
            r, rho = stats.pearsonr(*own)[0], stats.spearmanr(*own)[0]
            note = f'Pearson {r:+.2f}, Spearman {rho:+.2f}'
        name = record.header.blocks[column]
        assert axes.get_title() == f'{name}\n{note}'
    assert '38 samples' in figure.get_suptitle()
    assert 'left out: 1 of 40' in figure.get_suptitle()
    with pytest.raises(ValueError, match='SE: .*known gate'):
        step_figure(make_record(gates=False))
