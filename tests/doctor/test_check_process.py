"""Whatever a check does, the next one runs, and a row says so."""
import json
import multiprocessing
import os
import subprocess
import time

import pytest
import torch

from stepnet_mm.doctor import check_process, report

#: Checks that a process of its own imports.
CHECKS = '''
import os, subprocess, sys, time
FINE = dict(level='ok', text='fine')
def fine(argument):
    yield dict(FINE, text=f'{argument} {os.getpid()}')
def crash(argument):
    yield FINE
    os.abort()
def hang(argument):
    yield FINE
    time.sleep(60)
def leave(argument):
    yield FINE
    print('out of memory')
    sys.stdout.flush()
    os._exit(3)
def fail(argument):
    yield FINE
    raise RuntimeError('an illegal\\nmemory access')
def child(argument):
    process = subprocess.Popen(['sleep', '60'], close_fds=False)
    yield dict(FINE, text=f'{os.getpid()} {process.pid}')
    time.sleep(60)
'''


@pytest.fixture
def run(monkeypatch, tmp_path):
    """run(name, ..., left=, limit=) -> the rows of these checks, s."""
    (tmp_path / 'made_checks.py').write_text(CHECKS)
    monkeypatch.syspath_prepend(tmp_path)

    def run(*names, left=100, limit=60):
        one, found = check_process.CheckProcess('cpu', 100), []
        one.limit = limit
        for name in names:
            one.end = time.monotonic() + left
            found += one.run(f'made_checks:{name}', 'cpu')
        one.stop()
        return [(row['check'], row['level'], row['text'].partition(': ')[2])
                for row in found]

    return run


def test_a_check_that_ends_stops_no_other_and_keeps_its_rows(run):
    rows = run('fine', 'fine', 'crash', 'leave', 'fail', 'fine')
    first, second, last = [row for row in rows if row[0] == 'fine']
    assert first == second != last  # the same process, and a new one
    assert [row for row in rows if row[2] == 'fine'] == [
        (name, 'ok', 'fine') for name in ('crash', 'leave', 'fail')]
    crash, leave, fail = (row[2] for row in rows if row[1] == 'error')
    assert crash.startswith('ended by SIGABRT: ')
    assert leave.startswith('ended with code 3 (out of memory): ')
    assert fail.startswith('RuntimeError: an illegal memory access: ')


def test_a_check_that_hangs_is_ended(run):
    hang, end, fine = run('hang', 'fine', limit=2)
    assert [hang[:2], end[:2], fine[:2]] == [
        ('hang', 'ok'), ('hang', 'error'), ('fine', 'ok')]
    assert end[2] == 'not done in 2 s: set a higher --seconds'


def test_the_end_of_the_whole_time(run):
    # No error: on a sound machine a compiler may take minutes.
    assert run('hang', left=2)[1:] == [
        ('hang', 'warning', 'not done in 2 s: set a higher --seconds')]
    assert run('fine', left=0) == [
        ('fine', 'warning', 'not checked, the time is over: set a higher '
         '--seconds')]


def test_the_rows_so_far_are_in_the_file(tmp_path):
    written, found = report.Report(tmp_path / 'found.json'), []

    def some():
        for _ in range(2):
            yield report.row('ok', 'fine')
            found.append(json.loads(written.path.read_text()))

    written.add(some())
    assert [len(one['rows']) for one in found] == [1, 2]
    assert not found[-1]['finished']


@pytest.mark.parametrize('visible, device, expected', [
    (None, 'cuda:1', '1'), ('2,GPU-5', 'cuda:1', 'GPU-5'),
    ('2,GPU-5', 'cuda:2', ''), ('2', 'cuda', '2'), (None, 'cpu', '')])
def test_the_gpus_that_a_check_sees(monkeypatch, visible, device, expected):
    monkeypatch.delenv('CUDA_VISIBLE_DEVICES', raising=False)
    if visible is not None:
        monkeypatch.setenv('CUDA_VISIBLE_DEVICES', visible)
    monkeypatch.setattr(os, 'environ', dict(os.environ))
    check_process.show(device)
    assert os.environ['CUDA_VISIBLE_DEVICES'] == expected


def first_row(path):
    """Be a doctor, whose first row goes into a file."""
    process = check_process.CheckProcess('cpu', 100)
    found = next(process.run('made_checks:child', 'cpu'))
    path.write_text(found['text'])
    time.sleep(60)


def test_a_check_ends_with_the_doctor(run, tmp_path):
    path = tmp_path / 'row'
    doctor = multiprocessing.get_context('fork').Process(
        target=first_row, args=(path, ))
    doctor.start()
    while not path.exists() or not path.read_text():
        time.sleep(.1)
    doctor.kill()  # whatever it was that ended it
    check, other = path.read_text().split()[1:]
    limit = time.monotonic() + 20
    while alive(check) or alive(other):
        assert time.monotonic() < limit
        time.sleep(.1)


def alive(number):
    state = subprocess.run(['ps', '-o', 'stat=', '-p', number], text=True,
                           capture_output=True).stdout
    return state.strip()[:1] not in ('', 'Z')


def test_no_test_sees_a_gpu():
    """But those that are marked; a fork of the others trains on the CPU."""
    assert os.environ['CUDA_VISIBLE_DEVICES'] == ''
    assert not torch.cuda.is_available()
