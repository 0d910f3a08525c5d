"""Records are whole lines of runs that compare."""
import dataclasses
import json
from contextlib import contextmanager

import pytest
import study_records
from made_runs import made_steps
from study_records import StudyRecord, append_record, read_records

from stepnet_mm.utils.file_lock import lock_beside

RECORD = StudyRecord(
    study='s', method='plain', seed=0, settings='a', config='b',
    dataset='C a/b', metric='accuracy/top1', epochs=[{'epoch': 1, 'loss': 2.}],
    last=50., best=60., stiffness=dict(residual=dict(tns=.5, blocks=[])))


def another(**fields):
    return dataclasses.replace(RECORD, **fields)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / 'results/s.jsonl'
    append_record(path, RECORD)
    return path


def test_there_and_back(path):
    diverged = another(seed=1, diverged=True, last=None, best=None,
                       stiffness={})
    append_record(path, diverged)
    assert read_records(path) == [RECORD, diverged]
    assert read_records(path.with_name('none.jsonl')) == []


def test_a_line_that_a_kill_cut_is_no_record(path):
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:30])
    assert read_records(path) == [RECORD]
    append_record(path, another(seed=1))
    assert [r.seed for r in read_records(path)] == [0, 1]


@pytest.mark.parametrize('line', [
    b'[]', b'\xff', b'{"format": "other"}',
    json.dumps(dict(format='stepnet_mm study record 1', study='s')).encode(),
])
def test_a_broken_line_within_is_named(path, line):
    path.write_bytes(line + b'\n' + path.read_bytes())
    with pytest.raises(ValueError, match='s.jsonl: .*in line 1,'):
        read_records(path)


@pytest.mark.parametrize('fields, message', [
    (dict(), 'expected one record of each run'),
    (dict(seed=1, settings='z'), 'expected settings'),
    (dict(seed=1, config='z'), 'expected config'),
    (dict(method='se', dataset='Z a/b'), 'expected test_data'),
    (dict(method='se', dataset='C a/z'), 'expected test_data'),
    (dict(method='se', metric='z'), 'expected metric'),
])
def test_records_that_do_not_compare(path, fields, message):
    with pytest.raises(ValueError, match=f'a new line: {message}'):
        append_record(path, another(**fields))
    assert read_records(path) == [RECORD]
    more = path.with_name('more.jsonl')
    append_record(more, another(**fields))
    with pytest.raises(ValueError, match=f'more.jsonl: line 1: {message}'):
        read_records(path, more)


def test_devices_configs_and_training_images_may_differ(path):
    append_record(path, another(method='se', device='a GPU', config='z',
                                dataset='C z/b'))
    assert len(read_records(path)) == 2


@pytest.mark.parametrize('where', [dict(device='GPU'), dict(machine='two')])
def test_a_run_may_be_there_once_from_each_machine(path, where):
    again = path.with_name('again.jsonl')
    append_record(again, another(**where))
    assert read_records(path, again) == [RECORD, another(**where)]
    path.write_bytes(path.read_bytes() + again.read_bytes())
    assert len(read_records(path)) == 2
    with pytest.raises(ValueError, match='again.jsonl: line 1: .*s.jsonl: '
                       'line 2'):
        read_records(path, again)
    # A run that has its record is not made again by the way.
    with pytest.raises(ValueError, match='a new line: expected one record'):
        append_record(path, another(machine='three'))


def test_a_record_is_written_under_the_files_lock(path, monkeypatch):
    contents = []

    @contextmanager
    def lock(place, wait):
        contents.append((place, wait, len(read_records(path))))
        yield
        contents.append(len(read_records(path)))

    monkeypatch.setattr(study_records, 'file_lock', lock)
    append_record(path, another(seed=1))
    assert contents == [(lock_beside(path), True, 1), 2]


@pytest.mark.parametrize('fields', [
    dict(last=None), dict(last=float('nan')), dict(last=10**400),
    dict(seed='0'), dict(dataset=1), dict(wall_seconds=None),
    dict(versions=None), dict(epochs=[dict(loss=2.)]),
    dict(epochs=[dict(epoch=1, loss='2')]),
    dict(stiffness=dict(a=dict(tns='1', blocks=[]))),
    dict(stiffness=dict(a=dict(blocks=[dict(stage=1, nsi=.5)]))),
    dict(stiffness=dict(a=dict(blocks=[dict(stage=None, nsi=1, step=1)]))),
    dict(robustness=[1]), dict(robustness=dict(clean='2')),
    dict(test=dict(top1=2.)), dict(test=dict(epoch=1, top1='2')),
    dict(steps=dict(mean=.2)), dict(steps=dict(made_steps(), mean='2'))])
def test_no_record_of_a_run(fields):
    with pytest.raises(ValueError, match='expected the fields of a run'):
        another(**fields)
