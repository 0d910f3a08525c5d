import numpy as np
import pytest
from made_records import named
from tns_by_method import group_seeds, tns_by_method, tns_figure

pytest.importorskip('matplotlib')


def test_a_method_of_one_record_has_an_interval_over_samples():
    record = named('SE', samples=50, bad=3)
    tns = record.tns().numpy()
    draws = np.random.default_rng(0).integers(47, size=(1000, 47))
    low, high = np.percentile(tns[draws].mean(1), [2.5, 97.5])
    found = tns_by_method([record])
    mean, median, quantile = found['SE'].values()
    assert mean == pytest.approx((tns.mean(), low, high, []))
    assert median.value == np.median(tns)
    assert quantile.value == np.quantile(tns, .95)


@pytest.mark.parametrize('count', [4, 5])
def test_a_method_of_several_records_has_one_over_seeds(count):
    """It is the range of fewer than five seeds."""
    records = [named(f'SE_seed{i}', seed=i) for i in range(count)]
    records[2].nsi.mul_(10)
    rows = tns_by_method([*records, named('ECA')])
    assert [*rows] == ['SE', 'ECA']
    totals = [record.tns_summary() for record in records]
    for key in totals[0]:
        values, found = [total[key] for total in totals], rows['SE'][key]
        assert found.seeds == values
        assert found.value == pytest.approx(np.mean(values))
        assert ((found.low, found.high) == (min(values), max(values))) == (
            count < 5)


@pytest.mark.parametrize('given, expected', [
    (['SE_seed0', 'SE_seed1'], {'SE': 2}),
    (['SE', 'SE'], {'SE (1)': 1, 'SE (2)': 1}),
    (['SE_seed0', 'SE_seed0', 'SE_seed1'],
     {'SE_seed0 (1)': 1, 'SE_seed0 (2)': 1, 'SE': 1}),
    (['SE', 'SE_seed0', 'SE_seed1'], {'SE': 1, 'SE_seed*': 2})])
def test_only_records_of_different_seeds_are_pooled(given, expected):
    found = group_seeds([named(name) for name in given])
    assert {name: len(own) for name, own in found.items()} == expected


def test_what_is_drawn():
    records = [named('plain'),
               *(named(f'SE_seed{i}', seed=i, bad=2) for i in range(3))]
    figure = tns_figure(records)
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == [
        'plain', 'SE (3 seeds)']
    assert 'left out: SE_seed0: 2 of 40' in figure.get_suptitle()
    methods = tns_by_method(records)
    for axes, key, label in zip(
            figure.axes, ('tns', 'tns_median', 'tns_q95'),
            ('mean', 'median', '95 % quantile'), strict=True):
        for y, row in enumerate(methods.values()):
            own = row[key]
            span, dot, seeds = axes.lines[3 * y:3 * y + 3]
            assert [*span.get_xdata()] == [own.low, own.high]
            assert dot.get_xydata().tolist() == [[own.value, y]]
            assert [*seeds.get_xdata()] == own.seeds
        assert axes.get_xlabel() == f'{label} of samples'


def test_a_network_without_stiffness():
    record = named('flat')
    record.nsi.fill_(1)
    figure = tns_figure([record, record.renamed('other')])
    assert figure.axes[0].get_xlim() == (0, 1)
