"""Records are whole lines of runs that compare."""
import json
from contextlib import contextmanager
from dataclasses import replace
from math import inf

import pytest
import study_records
from made_runs import diverged_run, made_run
from study_records import append_record, read_records

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
    diverged = replace(diverged_run('se'), device='a GPU', config='z',
                       dataset='FolderCIFAR10 z/b')
    append_record(path, diverged)
    assert read_records(path) == [RECORD, diverged]


@pytest.mark.parametrize('line', [
    b'[]', b'{"format": "other"}', *(json.dumps(dict(
        {'format': 'stepnet_mm study record 1'}, **fields)).encode()
        for fields in (dict(study='s'), dict(vars(RECORD), last=None),
                       dict(vars(RECORD), seed='0')))])
def test_a_broken_line_within_is_named(path, line):
    path.write_bytes(line + b'\n' + path.read_bytes())
    with pytest.raises(ValueError, match='s.jsonl: .*in line 1,'):
        read_records(path)


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

    monkeypatch.setattr(study_records, 'file_lock', lock)
    append_record(path, replace(RECORD, seed=1))
    assert counts == [1, 2]
