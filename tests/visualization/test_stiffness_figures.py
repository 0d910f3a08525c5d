import numpy as np
import pytest
from made_records import make_record, named

from stepnet_mm.stiffness import stiffness_proportion, stiffness_survival
from stepnet_mm.visualization import (
    as_image,
    depth_figure,
    proportion_figure,
    seeds_figure,
    survival_figure,
    training_figure,
)


@pytest.fixture
def records():
    return [named('plain', bad=2), named('SE', (17, 17, 17), seed=1)]


@pytest.mark.parametrize('records, match', [
    ([], 'at least one stiffness record'),
    ([named('plain'), named('b', definition='output')],
     "one definition of NSI.*'residual': 'plain', 'output': 'b'"),
    ([named('plain'), named('empty', bad=40)],
     'empty: expected a sample .* got none in 40')])
def test_records_that_do_not_go_together(records, match):
    with pytest.raises(ValueError, match=match):
        depth_figure(records)


@pytest.mark.parametrize('figure', [
    survival_figure, proportion_figure, depth_figure, seeds_figure])
def test_stages_of_zeros(figure):
    zeros = make_record((1, 1, 1), samples=1)
    zeros.nsi.zero_()
    assert as_image(figure([zeros])).std() > 5


def test_survival_is_that_of_the_pure_function(records):
    """Drawn to where few samples are stiff."""
    *panels, bar = survival_figure(records).axes
    assert '%' in bar.get_ylabel()
    for axes, record in zip(panels, records, strict=True):
        mesh, = axes.collections
        m1, m2 = mesh.get_coordinates()[0, :, 0], mesh.get_coordinates()[
            :, 0, 1]
        share = stiffness_survival(record.nsi, record.stage, m1, m2)
        np.testing.assert_array_equal(mesh.get_array(), 100 * share.T)
        assert share[0, 0] == 1 and share[-1, 0] <= .01 >= share[0, -1]
        assert axes.get_xlim() == (0, m1[-1])


def test_heat_maps_are_those_of_the_pure_function(records):
    *panels, bar = proportion_figure(records).axes
    assert '%' in bar.get_ylabel()
    m1, m2 = [[float(tick.get_text()) for tick in ticks] for ticks in (
        panels[0].get_xticklabels(), panels[0].get_yticklabels())]
    share = [100 * stiffness_proportion(r.nsi, r.stage, m1, m2).numpy()
             for r in records]
    assert {axes.images[0].get_clim() for axes in panels} == {
        (0, max(table.max() for table in share))}
    for axes, table, record in zip(panels, share, records, strict=True):
        assert axes.images[0].get_array().tolist() == table.T.tolist()
        texts = {t.get_position(): t.get_text() for t in axes.texts}
        assert texts[0, 0] == f'{table[0, 0]:.0f}'
        assert texts[len(m1) - 1, 0] == (
            f'{table[-1, 0]:.1f}' if table[-1, 0] >= .1 else '0')
        assert axes.get_title().startswith(
            f'{record.name}\nTNS {record.tns().mean():.3g}, median ')
    assert panels[0].get_title().endswith('not finite, left out: 2 of 40')


def test_depth_is_the_median_with_bands_by_stage():
    records = [named('plain', (2, 1, 4), bad=2), named('SE', (3, 1), seed=1)]
    figure = depth_figure(records)
    assert [axes.get_title() for axes in figure.axes] == [
        'stage 1', 'stage 2', 'stage 3']
    assert [len(axes.lines) for axes in figure.axes] == [2, 2, 1]
    nsi = records[0].nsi[2:].numpy()
    line, = figure.axes[2].lines
    assert [xy.tolist() for xy in line.get_data()] == [
        [1, 2, 3, 4], np.median(nsi, 0)[3:].tolist()]
    for band, edges in zip(figure.axes[0].collections, ((.1, .9), (.25, .75))):
        drawn = band.get_paths()[0].vertices
        for column, x in enumerate((1, 2)):
            y = drawn[drawn[:, 0] == x, 1]
            assert [y.min(), y.max()] == pytest.approx(
                np.quantile(nsi[:, column], edges).tolist())
    assert figure.get_suptitle().endswith('left out: plain: 2 of 40')


def test_seeds_are_lines_without_bands():
    records = [named(f'SE_seed{i}', seed=i) for i in range(3)]
    figure = seeds_figure(records)
    legend, = figure.legends
    colors = [line.get_color() for line in figure.axes[0].lines]
    assert [line.get_color() for line in legend.get_lines()] == colors
    assert not any(axes.collections for axes in figure.axes)
    for axes, columns in zip(figure.axes, (slice(2), slice(2, 5))):
        assert [line.get_ydata().tolist() for line in axes.lines] == [
            np.median(r.nsi.numpy()[:, columns], 0).tolist() for r in records
        ]


def row(step, scale):
    return dict(step=step, tns=2.5 * scale, tns_median=scale,
                tns_q95=4 * scale, nsi_stage1_mean=.5 * scale,
                nsi_stage1_max=.9 * scale, nsi_stage10_mean=.2 * scale,
                nsi_stage10_max=.4 * scale, nonfinite=0.)


def test_a_curve_over_the_training():
    lost = dict(step=150, nonfinite=4.)
    upper, lower = training_figure([
        row(50, 1.), row(100, .5), lost, row(200, 2.)]).axes
    assert {line.get_label(): line.get_xydata().tolist()
            for line in upper.lines} == {
        'mean': [[50, 2.5], [100, 1.25], [200, 5.]],
        'median': [[50, 1.], [100, .5], [200, 2.]],
        '95 % quantile': [[50, 4.], [100, 2.], [200, 8.]]}
    assert [line.get_label() for line in lower.lines] == [
        'stage 1', 'stage 10']
    assert lower.lines[1].get_ydata().tolist() == [.2, .1, .4]
    bands = [set(band.get_paths()[0].vertices[:, 1].tolist())
             for band in lower.collections]
    assert bands == [{.5, .25, 1., .9, .45, 1.8}, {.2, .1, .4, .8}]
    assert as_image(training_figure([lost])).std() > 5
