"""The curves of TNSHooks in a work dir, over its starts."""
import json

from plot import read_stiffness_curves


def row(step, scale=1.):
    return dict(step=step, tns=2.5 * scale, nsi_stage1_mean=.5 * scale,
                nonfinite=0.)


def test_a_resumed_run_goes_on_and_each_hook_has_its_curve(
        tmp_path, write_log):
    write_log(tmp_path, '20250101_000000', [row(1), row(2), row(3)])
    write_log(tmp_path, '20250101_000000', [row(5)], 'probe')
    write_log(tmp_path, '20250101_000000', [
        dict(step=1), {'stiffness_eval/nonfinite': 0}], 'scalars')
    (tmp_path / '20250101_000000/vis_data/own.json').write_text(
        json.dumps(dict(step=1, nonfinite=0)))
    write_log(tmp_path, '20250102_000000', [
        row(3, 2.), dict(step=4, nonfinite=4.)])
    write_log(tmp_path, '20250103_000000', [])
    assert read_stiffness_curves(tmp_path) == dict(
        stiffness=[row(1), row(2), row(3, 2.), dict(step=4, nonfinite=4.)],
        probe=[row(5)])


def test_what_a_last_start_leaves_out_is_said(tmp_path, write_log, capsys):
    write_log(tmp_path, '20261129_094839', [row(1), row(2), row(3)])
    assert read_stiffness_curves(tmp_path) == dict(
        stiffness=[row(1), row(2), row(3)])
    assert not capsys.readouterr().err
    write_log(tmp_path, '20261130_000000', [row(1)])
    assert read_stiffness_curves(tmp_path) == dict(stiffness=[row(1)])
    assert 'up to step 1; what earlier ones' in capsys.readouterr().err
