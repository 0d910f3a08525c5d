import json

import cv2
import pytest

from stepnet_mm.analysis import read_stiffness_curve, read_stiffness_curves
from stepnet_mm.visualization import (
    curve_figure,
    save_figure,
)

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


def scalars(record):
    lines = [{
        key if key == 'step' else f'stiffness/{key}': value
        for key, value in entry.items()
    } for entry in record]
    return [dict(loss=.3, lr=.1, step=1, iter=1), *lines, dict(acc=1, step=0)]


def write(work_dir, run, lines):
    path = work_dir / run / 'vis_data' / 'scalars.json'
    path.parent.mkdir(parents=True)
    path.write_text(''.join(json.dumps(line) + '\n' for line in lines))


RECORD = [row(50), row(100, .5), dict(step=150, nonfinite=4.), row(200, 2.)]


def test_record_holds_the_stiffness_lines_without_their_prefix(tmp_path):
    write(tmp_path, '20250101_000000', scalars(RECORD))
    assert read_stiffness_curve(tmp_path) == RECORD
    assert read_stiffness_curve(str(tmp_path)) == RECORD


def test_a_resumed_run_goes_on(tmp_path):
    write(tmp_path, '20250101_000000', scalars([row(1), row(2), row(3)]))
    write(tmp_path, '20250102_000000', scalars([row(3, 2.), row(4)]))
    write(tmp_path, '20250103_000000', scalars([]))
    assert read_stiffness_curve(tmp_path) == [
        row(1), row(2), row(3, 2.), row(4)]


def test_each_hook_has_its_own_curve(tmp_path):
    probe = {'probe/nonfinite': 0, 'probe/tns': 1., 'step': 5}
    metric = {'stiffness_eval/nonfinite': 0, 'accuracy/top1': 1., 'step': 1}
    write(tmp_path, 'run', [*scalars([row(1)]), probe, metric])
    curves = read_stiffness_curves(tmp_path)
    assert curves == dict(
        stiffness=[row(1)], probe=[dict(step=5, tns=1., nonfinite=0)])
    assert read_stiffness_curve(tmp_path, 'probe') == curves['probe']


def test_a_line_that_a_kill_cut_is_left_out(tmp_path):
    write(tmp_path, 'run', scalars([row(1), row(2)]))
    path = tmp_path / 'run' / 'vis_data' / 'scalars.json'
    text = path.read_text()
    cut = text[:text.rindex('stiffness/tns')]
    path.write_text(cut)
    assert read_stiffness_curve(tmp_path) == [row(1)]


def test_a_missing_record_names_the_work_dir(tmp_path):
    with pytest.raises(FileNotFoundError, match=f'{tmp_path}: .*TNSHook'):
        read_stiffness_curve(tmp_path)
    write(tmp_path, 'run', scalars([]))
    with pytest.raises(FileNotFoundError, match=f'{tmp_path}: .*TNSHook'):
        read_stiffness_curve(tmp_path)


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


@pytest.mark.parametrize('line', [b'\xff', b'[' * 100_000],
                         ids=['no_text', 'deep'])
def test_lines_that_are_no_measurement_are_passed_over(tmp_path, line):
    path = tmp_path / '1/vis_data/scalars.json'
    path.parent.mkdir(parents=True)
    row = b'{"stiffness/tns": 1.0, "stiffness/nonfinite": 0, "step": 5}'
    path.write_bytes(line + b'\n' + row + b'\n')
    assert read_stiffness_curve(tmp_path) == [
        dict(tns=1., nonfinite=0, step=5)]
