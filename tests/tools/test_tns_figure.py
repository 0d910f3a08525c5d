import numpy as np
import pytest
from made_records import named
from tns_by_method import tns_by_method, tns_figure

from stepnet_mm.visualization import style

pytest.importorskip('matplotlib')


def pair(*parts, **kwargs):
    """A record of a plain network and one of its StepNet."""
    return [named('_'.join(['resnet164', method, *parts]), seed=i, **kwargs)
            for i, method in enumerate(('plain', 'stepnet'))]


def test_a_method_of_one_record_has_an_interval_over_samples():
    record = named('SE', samples=50, bad=3)
    tns = record.tns().numpy()
    draws = np.random.default_rng(0).integers(47, size=(1000, 47))
    low, high = np.percentile(tns[draws].mean(1), [2.5, 97.5])
    row, = tns_by_method([record])
    mean, median, quantile = row.estimates.values()
    assert mean == pytest.approx((tns.mean(), low, high, []))
    assert median.value == np.median(tns)
    assert quantile.value == np.quantile(tns, .95)


@pytest.mark.parametrize('count', [3, 4, 5])
def test_a_method_of_several_records_has_one_over_seeds(count):
    """It is the range of fewer than five seeds."""
    records = [named(f'SE_seed{i}', seed=i) for i in range(count)]
    records[2].nsi.mul_(10)
    row, other = tns_by_method([*records, named('ECA')])
    assert (row.name, row.seeds, other.seeds) == ('SE', count, 1)
    totals = [record.tns_summary() for record in records]
    for key in totals[0]:
        values, found = [total[key] for total in totals], row.estimates[key]
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
    found = tns_by_method([named(name) for name in given])
    assert {row.name: row.seeds for row in found} == expected


def names(figure):
    return [text.get_text() for text in figure.axes[0].get_yticklabels()]


def dots(axes):
    return [line.get_xydata()[0].tolist() for line in axes.lines
            if line.get_marker() == 'o']


def test_what_is_drawn():
    records = [*pair('mixup'), named('SE')]
    figure = tns_figure(records)
    assert names(figure) == ['resnet164_mixup', 'SE']
    methods = tns_by_method(records)
    for axes, key, label in zip(
            figure.axes, ('tns', 'tns_median', 'tns_q95'),
            ('mean', 'median', '95 % quantile'), strict=True):
        found = [row.estimates[key] for row in methods]
        assert dots(axes) == [
            [own.value, y] for own, y in zip(found, (-.14, .14, 1))]
        spans = [list(line.get_xdata()) for line in axes.lines[::3]]
        assert spans == [[own.low, own.high] for own in found]
        assert axes.get_xlabel() == f'{label} of samples'
    legend, = figure.legends
    colors = [line.get_color() for line in figure.axes[0].lines[::3]]
    assert [text.get_text() for text in legend.get_texts()] == [
        'plain', 'stepnet']
    assert [line.get_color() for line in legend.get_lines()] == colors[:2]
    with style.use():
        assert colors[2] == style.theme().ink


@pytest.mark.long
@pytest.mark.parametrize('given, expected', [
    (['plain', 'stepnet'], ['network']),
    (['plain_a', 'stepnet_b'], ['plain_a', 'stepnet_b']),
    (['r_plain_x', 'r_stepnet_x', 'r_se_x'], ['r_x', 'r_se_x']),
    (['r_stepnet_seed0', 'r_plain_seed0', 'r_plain_seed1'],
     ['r (seeds: 1, 2)']),
    (['r_plain', 'r_plain', 'r_se'], ['r_plain (1)', 'r_plain (2)', 'r_se'])])
def test_a_plain_network_and_its_stepnet_share_a_row(given, expected):
    figure = tns_figure([named(name) for name in given])
    assert names(figure) == expected
    assert len(figure.legends) == (len(expected) < len(set(given)) and (
        'stepnet' in ''.join(given)))


def test_single_seeds_are_drawn_and_lost_samples_counted():
    records = [named(f'SE_seed{i}', seed=i, bad=2) for i in range(3)]
    figure = tns_figure(records)
    _, _, seeds = figure.axes[1].lines
    assert seeds.get_xdata().tolist() == [
        record.tns_summary()['tns_median'] for record in records]
    assert 'left out: SE_seed0: 2 of 40' in figure.get_suptitle()


def test_a_network_without_stiffness():
    record = named('flat')
    record.nsi.fill_(1)
    figure = tns_figure([record, record.renamed('other')])
    assert figure.axes[0].get_xlim() == (0, 1)
