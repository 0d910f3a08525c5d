import cv2
import pytest

from stepnet_mm.visualization import curve_figure, save_figure

pytest.importorskip('matplotlib')


def row(step, scale=1.):
    return dict(
        step=step,
        tns=2.5 * scale,
        nsi_stage1_mean=.5 * scale,
        nsi_stage1_max=.9 * scale,
        nsi_stage10_mean=.2 * scale,
        nsi_stage10_max=.4 * scale,
        nonfinite=0.)


RECORD = [row(50), row(100, .5), dict(step=150, nonfinite=4.), row(200, 2.)]


def test_a_run_without_a_finite_sample_has_a_picture(tmp_path):
    path = tmp_path / 'curve.png'
    save_figure(curve_figure([dict(step=50, nonfinite=4.)]), path)
    assert cv2.imread(str(path)).std() > 5


def spread(step):
    return dict(row(step), tns_median=1., tns_q95=4.)


def test_the_spread_of_tns_is_drawn_where_it_was_measured():
    upper, _ = curve_figure([*RECORD, spread(250), spread(300)]).axes
    assert [line.get_label() for line in upper.lines] == [
        'mean', 'median', '95 % quantile']
    assert [line.get_xdata().tolist() for line in upper.lines] == [
        [50, 100, 200, 250, 300], [250, 300], [250, 300]]
    assert [line.get_ydata()[-1] for line in upper.lines] == [2.5, 1., 4.]
    assert upper.get_legend() and upper.get_ylim()[1] > 5.


def test_what_is_drawn_of_a_curve_of_before_the_quantiles():
    upper, lower = curve_figure(RECORD).axes
    line, = upper.lines
    assert upper.get_legend() is None
    assert line.get_xydata().tolist() == [[50, 2.5], [100, 1.25], [200, 5.]]
    labels = [line.get_label() for line in lower.lines]
    assert labels == ['stage 1', 'stage 10']
    assert lower.lines[1].get_ydata().tolist() == [.2, .1, .4]
    bands = [set(band.get_paths()[0].vertices[:, 1].tolist())
             for band in lower.collections]
    assert bands == [{.5, .25, 1., .9, .45, 1.8}, {.2, .1, .4, .8}]
