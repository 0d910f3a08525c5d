"""Whatever a check does, the next one runs, and a row says so."""
import multiprocessing
import os
import time

import psutil
import pytest
import torch

from stepnet_mm.doctor import process

#: Checks that a process of its own imports.
CHECKS = '''
import os, subprocess, sys, time
FINE = dict(level='ok', text='fine')
def fine(argument):
    yield dict(FINE, text=f"{argument}, {os.environ['CUDA_VISIBLE_DEVICES']}")
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
    other = subprocess.Popen(['sleep', '60'])
    with open(os.environ['PIDS'], 'w') as file:
        file.write(f'{os.getpid()} {other.pid}')
    if argument == 'wait':
        time.sleep(60)
    yield FINE
'''


@pytest.fixture
def run(monkeypatch, tmp_path):
    """run(name, seconds, left) -> the level and text of each of its rows."""
    (tmp_path / 'made_checks.py').write_text(CHECKS)
    monkeypatch.setenv('PYTHONPATH', str(tmp_path))
    monkeypatch.setenv('PIDS', str(tmp_path / 'numbers'))

    def run(name, seconds=60, left=60, device='cpu', argument='given'):
        found = process.run(name, f'made_checks:{name}', argument, device,
                            seconds, left)
        return [(row['level'], row['text'].removeprefix(f'{name}: '))
                for row in found]

    return run


@pytest.mark.parametrize('device, visible', [('cpu', ''), ('cuda', '2,3')])
def test_argument_and_gpus_of_a_check(run, monkeypatch, device, visible):
    monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '2,3')
    assert run('fine', device=device) == [('ok', f'given, {visible}')]


@pytest.mark.parametrize('name, limits, level, why', [
    ('crash', (), 'error', 'ended by SIGABRT: '),
    ('leave', (), 'error', 'ended with code 3 (out of memory): '),
    ('fail', (), 'error', 'RuntimeError: an illegal memory access: '),
    ('hang', (3, 60), 'error', 'not done in 3 s: '),
    ('hang', (60, 3), 'warning', 'not done, the time is over: ')])
def test_a_check_that_ends_keeps_its_rows(run, name, limits, level, why):
    fine, (found, text) = run(name, *limits)
    assert (fine, found) == (('ok', 'fine'), level)
    assert text.startswith(why)


def test_a_child_that_outlives_its_check_is_ended(run, tmp_path):
    assert run('child') == [('ok', 'fine')]
    check_ended(tmp_path / 'numbers')


def test_a_check_ends_with_the_doctor(run, tmp_path):
    path = tmp_path / 'numbers'
    doctor = multiprocessing.get_context('fork').Process(
        target=run, args=('child', ), kwargs=dict(argument='wait'))
    doctor.start()
    while not path.exists() or not path.read_text():
        time.sleep(.1)
    doctor.kill()  # whatever it was that ended it
    check_ended(path)


def check_ended(path):
    """The processes whose numbers are in a file end soon."""
    limit = time.monotonic() + 20
    while any(map(alive, path.read_text().split())):
        assert time.monotonic() < limit
        time.sleep(.1)


def alive(number):
    try:
        return psutil.Process(int(number)).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_no_test_sees_a_gpu():
    """But those that are marked; a fork of the others trains on the CPU."""
    assert os.environ['CUDA_VISIBLE_DEVICES'] == ''
    assert not torch.cuda.is_available()
