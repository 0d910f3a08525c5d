"""What a training logged, and where it stands."""
import json

import pytest
from study_outcome import epochs_of, is_trained, trained_with


@pytest.fixture
def start(tmp_path):
    """start('a line', [{...}]): a training's log and scalars."""
    count = iter(range(9))

    def start(text='', scalars=(), folder=tmp_path):
        name = f'20260101_00000{next(count)}'
        (folder / name / 'vis_data').mkdir(parents=True)
        (folder / name / f'{name}.log').write_text(text)
        (folder / name / 'vis_data/scalars.json').write_text(
            ''.join(json.dumps(line) + '\n' for line in scalars) + '{"cut')

    return start


def test_epochs_are_those_of_training_and_validation(start, tmp_path):
    start('', [dict(loss=9., loss_epoch=2., epoch=1, iter=3, step=3),
               {'stiffness/tns': .5, 'step': 2},
               {'accuracy/top1': 50., 'data_time': .1, 'step': 1}])
    start('', [dict(loss=1., epoch=2, iter=6, step=6)])
    assert epochs_of(tmp_path) == [
        {'epoch': 1, 'loss': 2., 'accuracy/top1': 50.},
        {'epoch': 2, 'loss': 1.}]


def test_iterations_are_those_that_were_evaluated(start, tmp_path):
    start('', [
        dict(loss=3., data_time=.1, iter=10, step=10),
        {'stiffness/tns': .5, 'step': 20},
        dict(loss=2., data_time=.1, iter=20, step=20),
        {'coco/bbox_mAP': .5, 'coco/RBC_precision': .6, 'data_time': .1,
         'step': 20},
        dict(loss=1., data_time=.1, iter=30, step=30)])
    assert epochs_of(tmp_path) == [
        {'epoch': 20, 'loss': 2., 'coco/bbox_mAP': .5,
         'coco/RBC_precision': .6}]


def test_commit_device_and_machine_are_those_of_the_starts_that_trained(
        start, tmp_path):
    line = '2026/11/24 01:45:10 - mmengine - INFO - stepnet_mm: '
    assert trained_with(tmp_path)['commit'] == 'unknown'
    start(f'{line}1.0.0, 123\n')
    assert trained_with(tmp_path)['commit'] == '123'
    for iteration, commit, machine in (
            (1, 'abc', 'Xeon, 2 threads'), (2, 'abc', 'EPYC, 1 threads'),
            (3, 'def-dirty', 'EPYC, 1 threads')):
        start(f'{line}1.0.0, {commit}\n{line}machine: {machine}\n'
              f'{line}train_cfg: replaced\nEpoch(train) [1][1/9]\n',
              [dict(loss=1., iter=iteration)])
    assert trained_with(tmp_path) == dict(
        commit='abc+def-dirty', device='cpu',
        machine='Xeon, 2 threads+EPYC, 1 threads')


def test_a_run_that_was_killed_in_its_last_validation(start, make_runs):
    """Its last checkpoint is older than that."""
    run, = make_runs()
    run.folder.mkdir(parents=True)
    (run.folder / 'epoch_2.pth').touch()
    (run.folder / 'last_checkpoint').write_text('elsewhere/epoch_2.pth')
    lines = [line for n in (1, 2) for line in (
        dict(loss=1., epoch=n, iter=n, step=n),
        {'accuracy/top1': 50., 'data_time': .1, 'step': n})]
    start('', lines[:3], run.folder)
    assert not is_trained(run)
    start('', lines[3:], run.folder)
    assert is_trained(run)
