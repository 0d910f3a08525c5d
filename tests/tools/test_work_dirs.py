"""What is read of a work dir, over its starts."""
import json

from plot import read_stiffness_curves


def row(step, scale=1.):
    return dict(step=step, tns=2.5 * scale, nsi_stage1_mean=.5 * scale,
                nonfinite=0.)


def write(work_dir, run, lines, name='stiffness'):
    """Lines of a log, and one that is cut."""
    path = work_dir / run / 'vis_data' / f'{name}.json'
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(''.join(json.dumps({
        key if key == 'step' or '/' in key else f'{name}/{key}': value
        for key, value in line.items()}) + '\n' for line in lines)
        + '{"stiffness/')


def test_a_resumed_run_goes_on_and_each_hook_has_its_curve(tmp_path):
    write(tmp_path, '20250101_000000', [row(1), row(2), row(3)])
    write(tmp_path, '20250101_000000', [row(5)], 'probe')
    write(tmp_path, '20250101_000000', [
        dict(step=1), {'stiffness_eval/nonfinite': 0}], 'scalars')
    write(tmp_path, '20250102_000000', [row(3, 2.),
                                        dict(step=4, nonfinite=4.)])
    write(tmp_path, '20250103_000000', [])
    assert read_stiffness_curves(tmp_path) == dict(
        stiffness=[row(1), row(2), row(3, 2.), dict(step=4, nonfinite=4.)],
        probe=[row(5)])


def test_what_a_last_start_leaves_out_is_said(tmp_path, capsys):
    write(tmp_path, '20261129_094839', [row(1), row(2), row(3)])
    assert read_stiffness_curves(tmp_path) == dict(
        stiffness=[row(1), row(2), row(3)])
    assert not capsys.readouterr().err
    write(tmp_path, '20261130_000000', [row(1)])
    assert read_stiffness_curves(tmp_path) == dict(stiffness=[row(1)])
    assert 'up to step 1; what earlier ones' in capsys.readouterr().err
