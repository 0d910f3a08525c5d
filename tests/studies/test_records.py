"""A training's log; records are whole lines of runs that compare."""
import json
from contextlib import contextmanager
from dataclasses import replace
from math import inf

import pytest
import records
from made_study import diverged_run, made_run
from outcome import epochs_of, is_trained, record_of, trained_with
from records import append_record, read_records

from stepnet_mm.utils.file_lock import lock_beside

RECORD = made_run()


@pytest.fixture
def path(tmp_path):
    path = tmp_path / 'results/s.jsonl'
    append_record(path, RECORD)
    return path


def test_a_line_that_a_kill_cut_is_no_record(path):
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:30])
    assert read_records(path, path.with_name('none.jsonl')) == [RECORD]
    diverged = diverged_run('se', device='a GPU', config='z',
                            dataset='FolderCIFAR10 z/b')
    append_record(path, diverged)
    assert read_records(path) == [RECORD, diverged]


@pytest.mark.parametrize('fields', [
    dict(format='other'), dict(study=1), dict(seed=True), dict(last=None),
    dict(unknown=1), dict(test=dict(a=-inf))], ids=str)
def test_a_broken_line_within_is_named(path, fields):
    line = json.dumps(dict(
        {'format': records.FORMAT, **vars(RECORD)}, **fields))
    path.write_bytes(line.encode() + b'\n' + path.read_bytes())
    with pytest.raises(ValueError, match='s.jsonl: .*in line 1,'):
        read_records(path)


@pytest.mark.parametrize('text', [
    b'note', b'{"a": {', b'{"format": "stepnet_mm", "a": 1,}'])
def test_a_last_line_that_no_kill_left_is_refused(path, text):
    whole = path.read_bytes() + text
    path.write_bytes(whole)
    with pytest.raises(ValueError, match='s.jsonl: .* line 2'):
        append_record(path, replace(RECORD, seed=1))
    assert path.read_bytes() == whole


@pytest.mark.parametrize('fields, message', [
    (dict(seed=1, settings='z'), 'expected settings'),
    (dict(seed=1, config='z'), 'expected config'),
    (dict(method='se', dataset='FolderCIFAR10 a/z'), 'expected test_data'),
    (dict(method='se', metric='z'), 'expected metric')])
def test_records_that_do_not_compare(path, fields, message):
    other, more = replace(RECORD, **fields), path.with_name('more.jsonl')
    with pytest.raises(ValueError, match=f'a new line: {message}'):
        append_record(path, other)
    append_record(more, other)
    with pytest.raises(ValueError, match=f'more.jsonl: line 1: {message}'):
        read_records(path, more)


@pytest.mark.parametrize('where', [dict(device='GPU'), dict(machine='two')])
def test_a_run_may_be_there_once_from_each_machine(path, where):
    append_record(path, replace(RECORD, **where))
    assert read_records(path) == [RECORD, replace(RECORD, **where)]
    with pytest.raises(ValueError, match='line 1: .* line 1 again'):
        read_records(path, path)


def test_a_record_is_written_under_the_files_lock(path, monkeypatch):
    counts = []

    @contextmanager
    def lock(place, wait):
        assert (place, wait) == (lock_beside(path), inf)
        counts.append(len(read_records(path)))
        yield
        counts.append(len(read_records(path)))

    monkeypatch.setattr(records, 'file_lock', lock)
    append_record(path, replace(RECORD, seed=1))
    assert counts == [1, 2]


def start(folder, second, text='', scalars=()):
    """A start of a training: its log and its scalars, the last one cut."""
    name = f'20260101_00000{second}'
    (folder / name / 'vis_data').mkdir(parents=True)
    (folder / name / f'{name}.log').write_text(text)
    (folder / name / 'vis_data/scalars.json').write_text(
        ''.join(json.dumps(line) + '\n' for line in scalars) + '{"cut')


@pytest.mark.parametrize('first, second, found', [
    ([dict(loss=9., loss_epoch=2., epoch=1, iter=3, step=3),
      {'stiffness/tns': .5, 'step': 2},
      {'accuracy/top1': 50., 'data_time': .1, 'step': 1},
      dict(loss=7., epoch=2, iter=6, step=6)],  # runs again
     [dict(loss=1., epoch=2, iter=6, step=6)],
     [{'epoch': 1, 'loss': 2., 'accuracy/top1': 50.},
      {'epoch': 2, 'loss': 1.}]),
    # Counted by iterations: those that were evaluated.
    ([dict(loss=3., data_time=.1, iter=10, step=10),
      {'stiffness/tns': .5, 'step': 20}],
     [dict(loss=2., data_time=.1, iter=20, step=20),
      {'coco/bbox_mAP': .5, 'data_time': .1, 'step': 20},
      dict(loss=1., data_time=.1, iter=30, step=30)],
     [{'epoch': 20, 'loss': 2., 'coco/bbox_mAP': .5}])])
def test_epochs_are_those_of_training_and_validation(
        tmp_path, first, second, found):
    start(tmp_path, 1, scalars=first)
    start(tmp_path, 2, scalars=second)
    assert epochs_of(tmp_path) == found


def test_a_damaged_result_of_a_tool_is_named(make_runs):
    run, = make_runs()
    run.ablation_file.parent.mkdir(parents=True)
    run.ablation_file.write_text('{"metrics": ')
    start(run.folder, 1, scalars=[{'accuracy/top1': 1., 'data_time': 1.,
                                   'step': 2}])
    with pytest.raises(ValueError, match='steps.json: .*delete the file'):
        record_of(run)


def test_commit_device_and_machine_are_those_of_the_starts_that_trained(
        tmp_path):
    line = '2026/11/24 01:45:10 - mmengine - INFO - stepnet_mm: '
    assert trained_with(tmp_path)['commit'] == 'unknown'
    start(tmp_path, 0, f'{line}1.0.0, 123\n')
    assert trained_with(tmp_path)['commit'] == '123'
    for second, commit, machine in (
            (1, 'abc', 'Xeon, 2 threads'), (2, 'abc', 'EPYC, 1 threads'),
            (3, 'def-dirty', 'EPYC, 1 threads')):
        start(tmp_path, second,
              f'{line}1.0.0, {commit}\n{line}machine: {machine}\n'
              f'{line}train_cfg: replaced\nEpoch(train) [1][1/9]\n')
    assert trained_with(tmp_path) == dict(
        commit='abc+def-dirty', device='cpu',
        machine='Xeon, 2 threads+EPYC, 1 threads')


def test_a_run_that_was_killed_in_its_last_validation(make_runs):
    """Its last checkpoint is older than that."""
    run, = make_runs()
    run.folder.mkdir(parents=True)
    (run.folder / 'epoch_2.pth').touch()
    (run.folder / 'last_checkpoint').write_text('elsewhere/epoch_2.pth')
    lines = [line for n in (1, 2) for line in (
        dict(loss=1., epoch=n, iter=n, step=n),
        {'accuracy/top1': 50., 'data_time': .1, 'step': n})]
    start(run.folder, 1, scalars=lines[:3])
    assert not is_trained(run)
    start(run.folder, 2, scalars=lines[3:])
    assert is_trained(run)
