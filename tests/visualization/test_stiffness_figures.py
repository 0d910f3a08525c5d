import numpy as np
import pytest
from made_records import make_record, named

from stepnet_mm.stiffness import (
    stiffness_proportion,
    stiffness_survival,
)
from stepnet_mm.visualization import (
    as_image,
    depth_figure,
    proportion_figure,
    seeds_figure,
    survival_figure,
)

pytest.importorskip('matplotlib')

FIGURES = [survival_figure, proportion_figure, depth_figure, seeds_figure]
DEEP = (17, 17, 17)


def two_records():
    return [named('plain', bad=2), named('SE', DEEP, seed=1)]


def surface_z(axes):
    """Corners of the faces of a surface as {(m1, m2): z}."""
    surface, = axes.collections
    corners = np.asarray(surface._vec[:3]).T
    return {(m1, m2): z for m1, m2, z in corners}


@pytest.mark.parametrize('figure', FIGURES)
def test_odd_records(figure):
    zeros = make_record((1, 1, 1), samples=1)
    zeros.nsi.zero_()
    assert as_image(figure([zeros])).std() > 5
    with pytest.raises(ValueError, match='residual.*output'):
        figure([make_record(), make_record(definition='output')])


def test_surfaces_are_those_of_the_pure_function():
    m1, m2 = [0., .5, 2.], [0., 1., 3., 4.]
    records = two_records()
    figure = survival_figure(records, m1, m2)
    for axes, record in zip(figure.axes, records, strict=True):
        share = stiffness_survival(record.nsi, record.stage, m1, m2)
        assert surface_z(axes) == {
            (a, b): share[i, j].item()
            for i, a in enumerate(m1) for j, b in enumerate(m2)
        }
        assert axes.get_xlim() == (0, 2) and axes.get_ylim() == (0, 4)
    for axes in survival_figure(records).axes:  # to where few are stiff
        z, (_, m1), (_, m2) = surface_z(axes), axes.get_xlim(), axes.get_ylim()
        assert z[0., 0.] == 1 and z[m1, 0.] <= .01 and z[0., m2] <= .01


@pytest.mark.parametrize('m1, m2', [
    ([0., 1.], [2., 2.]), ([-1., 1.], [0., 1.])])
def test_wrong_thresholds(m1, m2):
    with pytest.raises(ValueError, match='m[12]'):
        survival_figure([make_record()], m1, m2)


def test_heat_maps_are_those_of_the_pure_function():
    m1, m2 = [0., .5, 20.], [0., 3.]
    records = two_records()
    *panels, bar = proportion_figure(records, m1, m2).axes
    scale = {axes.images[0].get_clim() for axes in panels}
    share = [
        100 * stiffness_proportion(r.nsi, r.stage, m1, m2).numpy()
        for r in records
    ]
    assert scale == {(0, max(table.max() for table in share))}
    assert '%' in bar.get_ylabel()
    for axes, table, record in zip(panels, share, records, strict=True):
        assert axes.images[0].get_array().tolist() == table.T.tolist()
        texts = {t.get_position(): t.get_text() for t in axes.texts}
        assert texts[0, 0] == f'{table[0, 0]:.0f}'
        assert texts[2, 1] == '0'
        assert [t.get_text() for t in axes.get_xticklabels()
                ] == ['0', '0.5', '20']
        assert axes.get_title().startswith(
            f'{record.name}\nTNS {record.tns().mean():.4g}, median ')
    assert panels[0].get_title().endswith('not finite, left out: 2 of 40')


def test_small_percents():
    record = make_record((500, 501), samples=2)
    record.nsi[:] = 1
    record.nsi[0, 0] = 100
    axes = proportion_figure([record], [0., 5.], [50.]).axes[0]
    # One of 2 x 1001 blocks.
    assert [t.get_text() for t in axes.texts] == ['<0.1'] * 2


def lines_of(axes):
    return [[xy.tolist() for xy in line.get_data()] for line in axes.lines]


def test_depth_is_the_median_with_bands_by_stage():
    records = [named('plain', (2, 1, 4), bad=2), named('SE', (3, 1), seed=1)]
    figure = depth_figure(records)
    assert [axes.get_title() for axes in figure.axes] == [
        'stage 1', 'stage 2', 'stage 3'
    ]
    assert [len(axes.lines) for axes in figure.axes] == [2, 2, 1]
    nsi = records[0].nsi[2:].sort(0).values.numpy()
    assert lines_of(figure.axes[2])[0] == [
        [1, 2, 3, 4], ((nsi[18] + nsi[19]) / 2)[3:].tolist()
    ]
    for band, low, high in zip(figure.axes[0].collections, (.1, .25),
                               (.9, .75)):
        own = np.sort(records[0].nsi[2:, :2].numpy(), 0)
        drawn = band.get_paths()[0].vertices
        for column, x in enumerate((1, 2)):
            y = drawn[drawn[:, 0] == x, 1]
            assert [y.min(), y.max()] == pytest.approx(
                np.interp([low * 37, high * 37], range(38),
                          own[:, column]).tolist())
    assert figure.get_suptitle().endswith('left out: plain: 2 of 40')


def test_seeds_are_lines_without_bands():
    records = [named(f'SE_seed{i}', seed=i) for i in range(3)]
    figure = seeds_figure(records)
    legend, = figure.legends
    colors = [line.get_color() for line in figure.axes[0].lines]
    assert [line.get_color() for line in legend.get_lines()] == colors
    assert len(set(colors)) == 3
    assert [text.get_text() for text in legend.get_texts()] == [
        record.name for record in records]
    assert not any(axes.collections for axes in figure.axes)
    for axes, columns in zip(figure.axes, (slice(2), slice(2, 5))):
        assert [y for _, y in lines_of(axes)] == [
            np.median(r.nsi.numpy()[:, columns], 0).tolist() for r in records
        ]
    with pytest.raises(ValueError, match='b: expected the blocks of SE'):
        seeds_figure([make_record(), named('b', (3, 2))])
