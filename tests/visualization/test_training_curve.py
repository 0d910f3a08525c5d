import pytest

from stepnet_mm.visualization import as_image, curve_figure

pytest.importorskip('matplotlib')


def row(step, scale=1.):
    return dict(
        step=step,
        tns=2.5 * scale,
        tns_median=scale,
        tns_q95=4 * scale,
        nsi_stage1_mean=.5 * scale,
        nsi_stage1_max=.9 * scale,
        nsi_stage10_mean=.2 * scale,
        nsi_stage10_max=.4 * scale,
        nonfinite=0.)


RECORD = [row(50), row(100, .5), dict(step=150, nonfinite=4.), row(200, 2.)]


def test_what_is_drawn_of_a_curve():
    upper, lower = curve_figure(RECORD).axes
    assert {line.get_label(): line.get_xydata().tolist()
            for line in upper.lines} == {
        'mean': [[50, 2.5], [100, 1.25], [200, 5.]],
        'median': [[50, 1.], [100, .5], [200, 2.]],
        '95 % quantile': [[50, 4.], [100, 2.], [200, 8.]]}
    assert upper.get_legend() and upper.get_ylim()[1] > 8.
    labels = [line.get_label() for line in lower.lines]
    assert labels == ['stage 1', 'stage 10']
    assert lower.lines[1].get_ydata().tolist() == [.2, .1, .4]
    bands = [set(band.get_paths()[0].vertices[:, 1].tolist())
             for band in lower.collections]
    assert bands == [{.5, .25, 1., .9, .45, 1.8}, {.2, .1, .4, .8}]
    nothing = curve_figure([dict(step=50, nonfinite=4.)])
    assert as_image(nothing).std() > 5
