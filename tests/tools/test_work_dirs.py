"""What TNSHooks logged in a work dir, over its starts."""
import json

from work_dirs import read_stiffness_curves


def row(step, scale=1.):
    return dict(step=step, tns=2.5 * scale, nsi_stage1_mean=.5 * scale,
                nonfinite=0.)


def write(work_dir, run, record, name='stiffness'):
    """Measurements beside what mmengine logs, and a line that is cut."""
    lines = [{
        key if key == 'step' else f'{name}/{key}': value
        for key, value in entry.items()
    } for entry in record]
    path = work_dir / run / 'vis_data' / f'{name}.json'
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(''.join(json.dumps(line) + '\n' for line in lines)
                    + '{"stiffness/')
    path.with_name('scalars.json').write_text(
        '{"loss": 0.3, "step": 1}\n{"stiffness_eval/nonfinite": 0}\n')


def test_a_resumed_run_goes_on_and_each_hook_has_its_curve(tmp_path):
    write(tmp_path, '20250101_000000', [row(1), row(2), row(3)])
    write(tmp_path, '20250101_000000', [row(5)], 'probe')
    write(tmp_path, '20250102_000000', [row(3, 2.),
                                        dict(step=4, nonfinite=4.)])
    write(tmp_path, '20250103_000000', [])
    assert read_stiffness_curves(tmp_path) == dict(
        stiffness=[row(1), row(2), row(3, 2.), dict(step=4, nonfinite=4.)],
        probe=[row(5)])
