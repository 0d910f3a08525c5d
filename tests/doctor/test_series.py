"""Whatever a check does, its series goes on and says so."""
import json
import multiprocessing
import os
import signal
import subprocess
import time
from types import SimpleNamespace

import pytest
import torch

from stepnet_mm.doctor import rows, series

#: Checks that a process of its own imports.
CHECKS = '''
import os, subprocess, sys, time
FINE = dict(level='ok', text='fine')
def fine(argument):
    yield dict(FINE, text=f'on {argument}')
def crash(argument):
    yield FINE
    os.abort()
def hang(argument):
    yield FINE
    time.sleep(60)
def leave(argument):
    yield FINE
    print('out of memory')
    sys.exit(3)
def fail(argument):
    yield FINE
    raise RuntimeError('an illegal\\nmemory access')
def device(argument):
    yield dict(FINE, level='error')
def child(argument):
    process = subprocess.Popen(['sleep', '60'])
    yield dict(FINE, text=f'{os.getpid()} {process.pid}')
    time.sleep(60)
'''


@pytest.fixture
def run(monkeypatch, tmp_path):
    """run(name, ..., seconds=) -> the rows of these checks."""
    (tmp_path / 'made_checks.py').write_text(CHECKS)
    monkeypatch.syspath_prepend(tmp_path)

    def run(*names, seconds=100, limit=60):
        monkeypatch.setattr(series, 'CHECKS', {
            f'made_checks:{name}': limit for name in names})
        return [(row['check'], row['level'], row['text'].partition(': ')[2])
                for row in series.check_device('cpu', seconds)]

    return run


def test_a_check_that_ends_stops_no_other_and_keeps_its_rows(run):
    rows = run('crash', 'leave', 'fail', 'fine')
    assert [row for row in rows if row[1] == 'ok'] == [
        ('crash', 'ok', 'fine'), ('leave', 'ok', 'fine'),
        ('fail', 'ok', 'fine'), ('fine', 'ok', 'on cpu')]
    crash, leave, fail = (row for row in rows if row[1] == 'error')
    assert crash[2].startswith('ended by SIGABRT: please report it')
    assert leave[2].startswith('ended with code 3 (out of memory): ')
    assert fail[2].startswith('RuntimeError: an illegal memory access: '
                              'please report it')


@pytest.mark.parametrize('load, level, why', [
    (0, 'error', 'not done after 9 s: please report it'),
    (9, 'warning', 'not done after 9 s on a busy machine (load 9.0, 2 ')])
def test_a_check_that_hangs_is_ended(run, monkeypatch, load, level, why):
    monkeypatch.setattr(os, 'getloadavg', lambda: (load, 0, 0))
    monkeypatch.setattr(os, 'cpu_count', lambda: 2)
    hang, end, fine = run('hang', 'fine', limit=9)
    assert [hang[:2], end[:2], fine[:2]] == [
        ('hang', 'ok'), ('hang', level), ('fine', 'ok')]
    assert end[2].startswith(why)


def test_the_end_of_the_whole_time(run, monkeypatch):
    now = 0.

    def run_process(key, argument, rows, log, limit):
        nonlocal now
        log.touch()
        now += limit
        return -signal.SIGALRM

    monkeypatch.setattr(series, '_run_process', run_process)
    monkeypatch.setattr(series, 'time', SimpleNamespace(monotonic=lambda: now))
    assert run('hang', 'fine', seconds=1.9) == [
        # No error: on a sound machine a compiler may take minutes.
        ('hang', 'warning', 'not done in the 2 s that were left: set a '
         'higher --seconds'),
        ('fine', 'warning', 'not checked, the time is over: set a higher '
         '--seconds')]
    assert now == 1.9  # not the check's own limit


def test_nothing_is_tried_on_a_device_that_is_not_there(run):
    assert run('device', 'fine') == [('device', 'error', 'fine')]


def test_the_rows_so_far_are_in_the_file(tmp_path):
    report = rows.Report(tmp_path / 'found.json')
    found = []

    def some():
        for _ in range(2):
            yield rows.row('ok', 'fine')
            found.append(json.loads(report.path.read_text()))

    report.add(some())
    assert [len(one['rows']) for one in found] == [1, 2]
    assert not found[-1]['finished']


@pytest.mark.parametrize('visible, device, expected', [
    (None, 'cuda:1', '1'), ('2,GPU-5', 'cuda:1', 'GPU-5'),
    ('2,GPU-5', 'cuda:2', ''), (None, 'cpu', '')])
def test_the_gpus_that_a_check_sees(monkeypatch, visible, device, expected):
    monkeypatch.delenv('CUDA_VISIBLE_DEVICES', raising=False)
    if visible is not None:
        monkeypatch.setenv('CUDA_VISIBLE_DEVICES', visible)
    found = series._variables(device)
    assert found['CUDA_VISIBLE_DEVICES'] == expected


def test_a_check_ends_with_the_doctor(run, tmp_path):
    path = tmp_path / 'rows'
    doctor = multiprocessing.get_context('fork').Process(
        target=series._run_process, args=(
            'made_checks:child', 'cpu', path, tmp_path / 'log', 60))
    doctor.start()
    while not path.exists():
        time.sleep(.1)
    doctor.kill()  # whatever it was that ended it
    check, other = json.loads(path.read_text())['text'].split()[1:]
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
