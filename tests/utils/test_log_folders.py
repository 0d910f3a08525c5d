"""Log folders in the order of the starts, whatever their names say."""
import json

import pytest
from study_outcome import epochs_of, trained_with
from work_dirs import read_run, read_stiffness_curves

from stepnet_mm.attention import attention_files, attention_path
from stepnet_mm.utils.log_folders import in_order


@pytest.mark.parametrize('steps, order', [
    (dict(a=[5, 10], b=[15, 20], c=[18, 23]), 'abc'),
    (dict(a=[15, 20], b=[5, 10]), 'ba'),  # b in Tokyo, then a in London
    (dict(a=[5, 10], b=[25], c=[15, 20]), 'acb'),
    (dict(a=[10], b=[5]), 'ba'),
    # c began anew, or went on from an earlier checkpoint.
    (dict(a=[5, 10], b=[15, 20], c=[5, 10]), 'abc'),
    (dict(a=[5, 10], b=[15, 20, 25], c=[15, 20]), 'abc'),
    (dict(a=[1005, 1010], b=[1015]), 'ab'),  # from another work dir
    (dict(b=[15], a=[], c=[5]), 'cba'),
    (dict(a=[], b=[]), 'ab'), ({}, '')])
def test_names_decide_unless_the_steps_say_otherwise(steps, order):
    assert in_order(steps) == [*order]


@pytest.fixture
def work_dir(tmp_path):
    """A run that was killed in Tokyo and resumed in London."""
    for name, iterations, place in (('20260101_095000', (5, 10), 'Tokyo'),
                                    ('20260101_010100', (15, 20), 'London')):
        begin, hour = tmp_path / name, name[9:11]
        (begin / 'vis_data').mkdir(parents=True)
        (begin / 'vis_data/scalars.json').write_text(''.join(
            json.dumps(line) + '\n' for i in iterations for line in (
                dict(loss=1., iter=i, step=i),
                {'coco/bbox_mAP': i / 20, 'stiffness_eval/tns': 1.,
                 'data_time': 1., 'step': i})))
        (begin / 'vis_data/stiffness.json').write_text(''.join(
            json.dumps({'stiffness/nonfinite': 0., 'step': i}) + '\n'
            for i in iterations))
        (begin / f'{name}.log').write_text(
            f'2026/01/01 {hour}:02:00 - mmengine - INFO - stepnet_mm: '
            f'machine: {place}\n2026/01/01 {hour}:59:00 - mmengine - INFO - '
            f'Iter(train) [{iterations[-1]}/20]  lr: 1\n')
        for i in iterations:
            path = attention_path(begin, 'attention', i)
            path.parent.mkdir(exist_ok=True)
            path.touch()
    return tmp_path


def test_a_resume_in_another_zone(work_dir):
    assert read_run(work_dir, 'coco/bbox_mAP')['metric'] == 1
    steps = [row['step'] for row
             in read_stiffness_curves(work_dir)['stiffness']]
    assert steps == [5, 10, 15, 20]
    assert [int(path.stem[-2:]) for path in attention_files(work_dir)] == steps
    assert [epoch['epoch'] for epoch in epochs_of(work_dir)] == steps
    assert trained_with(work_dir)['machine'] == 'London+Tokyo'
