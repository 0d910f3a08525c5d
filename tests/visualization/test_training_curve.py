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
        tns_median=scale,
        tns_q95=4 * scale,
        nsi_stage1_mean=.5 * scale,
        nsi_stage1_max=.9 * scale,
        nsi_stage10_mean=.2 * scale,
        nsi_stage10_max=.4 * scale,
        nonfinite=0.)


def write(work_dir, run, record, name='stiffness'):
    """Measurements, and beside them what mmengine logs."""
    lines = [{
        key if key == 'step' else f'{name}/{key}': value
        for key, value in entry.items()
    } for entry in record]
    path = work_dir / run / 'vis_data' / f'{name}.json'
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(''.join(json.dumps(line) + '\n' for line in lines))
    path.with_name('scalars.json').write_text(
        '{"loss": 0.3, "step": 1}\n{"stiffness_eval/nonfinite": 0}\n')


RECORD = [row(50), row(100, .5), dict(step=150, nonfinite=4.), row(200, 2.)]


def test_record_holds_the_stiffness_lines_without_their_prefix(tmp_path):
    write(tmp_path, '20250101_000000', RECORD)
    assert read_stiffness_curve(tmp_path) == RECORD
    assert read_stiffness_curve(str(tmp_path)) == RECORD


def test_a_resumed_run_goes_on(tmp_path):
    write(tmp_path, '20250101_000000', [row(1), row(2), row(3)])
    write(tmp_path, '20250102_000000', [row(3, 2.), row(4)])
    write(tmp_path, '20250103_000000', [])
    assert read_stiffness_curve(tmp_path) == [
        row(1), row(2), row(3, 2.), row(4)]


def test_each_hook_has_its_own_curve(tmp_path):
    write(tmp_path, 'run', [row(1)])
    write(tmp_path, 'run', [row(5)], 'probe')
    curves = read_stiffness_curves(tmp_path)
    assert curves == dict(stiffness=[row(1)], probe=[row(5)])
    assert read_stiffness_curve(tmp_path, 'probe') == curves['probe']


def test_a_line_that_a_kill_cut_is_left_out(tmp_path):
    write(tmp_path, 'run', [row(1), row(2)])
    path = tmp_path / 'run' / 'vis_data' / 'stiffness.json'
    text = path.read_text()
    cut = text[:text.rindex('stiffness/tns')]
    path.write_text(cut)
    assert read_stiffness_curve(tmp_path) == [row(1)]


def test_a_missing_record_names_the_work_dir(tmp_path):
    with pytest.raises(FileNotFoundError, match=f'{tmp_path}: .*TNSHook'):
        read_stiffness_curve(tmp_path)
    write(tmp_path, 'run', [])
    with pytest.raises(FileNotFoundError, match=f'{tmp_path}: .*TNSHook'):
        read_stiffness_curve(tmp_path)


def test_a_run_without_a_finite_sample_has_a_picture(tmp_path):
    path = tmp_path / 'curve.png'
    save_figure(curve_figure([dict(step=50, nonfinite=4.)]), path)
    assert cv2.imread(str(path)).std() > 5


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


@pytest.mark.parametrize('line', [b'\xff', b'[' * 100_000],
                         ids=['no_text', 'deep'])
def test_lines_that_are_no_measurement_are_passed_over(tmp_path, line):
    path = tmp_path / '1/vis_data/stiffness.json'
    path.parent.mkdir(parents=True)
    row = b'{"stiffness/tns": 1.0, "stiffness/nonfinite": 0, "step": 5}'
    path.write_bytes(line + b'\n' + row + b'\n')
    assert read_stiffness_curve(tmp_path) == [
        dict(tns=1., nonfinite=0, step=5)]
