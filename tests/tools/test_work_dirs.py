"""What TNSHooks logged in a work dir, over its starts."""
import json

import pytest
from work_dirs import read_stiffness_curves


def row(step, scale=1.):
    return dict(step=step, tns=2.5 * scale, nsi_stage1_mean=.5 * scale,
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


def test_record_holds_the_stiffness_lines_without_their_prefix(tmp_path):
    record = [row(50), row(100, .5), dict(step=150, nonfinite=4.), row(200)]
    write(tmp_path, '20250101_000000', record)
    assert read_stiffness_curves(tmp_path) == dict(stiffness=record)


def test_a_resumed_run_goes_on(tmp_path):
    write(tmp_path, '20250101_000000', [row(1), row(2), row(3)])
    write(tmp_path, '20250102_000000', [row(3, 2.), row(4)])
    write(tmp_path, '20250103_000000', [])
    assert read_stiffness_curves(tmp_path)['stiffness'] == [
        row(1), row(2), row(3, 2.), row(4)]


def test_each_hook_has_its_own_curve(tmp_path):
    write(tmp_path, 'run', [row(1)])
    write(tmp_path, 'run', [row(5)], 'probe')
    assert read_stiffness_curves(tmp_path) == dict(
        stiffness=[row(1)], probe=[row(5)])


def test_a_line_that_a_kill_cut_is_left_out(tmp_path):
    write(tmp_path, 'run', [row(1), row(2)])
    path = tmp_path / 'run' / 'vis_data' / 'stiffness.json'
    text = path.read_text()
    cut = text[:text.rindex('stiffness/tns')]
    path.write_text(cut)
    assert read_stiffness_curves(tmp_path)['stiffness'] == [row(1)]


@pytest.mark.parametrize('line', [b'\xff', b'[' * 100_000],
                         ids=['no_text', 'deep'])
def test_lines_that_are_no_measurement_are_passed_over(tmp_path, line):
    path = tmp_path / '1/vis_data/stiffness.json'
    path.parent.mkdir(parents=True)
    row = b'{"stiffness/tns": 1.0, "stiffness/nonfinite": 0, "step": 5}'
    path.write_bytes(line + b'\n' + row + b'\n')
    assert read_stiffness_curves(tmp_path)['stiffness'] == [
        dict(tns=1., nonfinite=0, step=5)]
