"""Whatever a check does, the next one runs, and a row says so."""
import multiprocessing
import os
import subprocess
import time

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
    time.sleep(60)
    yield FINE
def forks(argument):
    if other := os.fork():
        yield dict(FINE, text=f'{other}')
    else:
        time.sleep(60)
'''


@pytest.fixture
def run(monkeypatch, tmp_path):
    """run(name, seconds=) -> the level and text of each row of this check."""
    (tmp_path / 'made_checks.py').write_text(CHECKS)
    monkeypatch.setenv('PYTHONPATH', str(tmp_path))

    def run(name, seconds=60, device='cpu'):
        found = process.run(name, f'made_checks:{name}', 'given', device,
                            seconds)
        return [(row['level'], row['text'].removeprefix(f'{name}: '))
                for row in found]

    return run


@pytest.mark.parametrize('device, visible', [('cpu', ''), ('cuda', '2,3')])
def test_argument_and_gpus_of_a_check(run, monkeypatch, device, visible):
    monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '2,3')
    assert run('fine', device=device) == [('ok', f'given, {visible}')]


@pytest.mark.parametrize('name, why', [
    ('crash', 'ended by SIGABRT: '),
    ('leave', 'ended with code 3 (out of memory): '),
    ('fail', 'RuntimeError: an illegal memory access: ')])
def test_a_check_that_ends_keeps_its_rows(run, name, why):
    fine, (level, text) = run(name)
    assert (fine, level) == (('ok', 'fine'), 'error')
    assert text.startswith(why)


def test_a_check_that_hangs_is_ended(run):
    assert run('hang', 3) == [
        ('ok', 'fine'), ('error', 'not done in 3 s: set a higher --seconds')]


def test_a_child_that_outlives_its_check_is_ended(run):
    (level, text), = run('forks')
    assert level == 'ok'
    assert not alive(text)


def test_a_check_ends_with_the_doctor(run, tmp_path, monkeypatch):
    path = tmp_path / 'numbers'
    monkeypatch.setenv('PIDS', str(path))
    doctor = multiprocessing.get_context('fork').Process(
        target=run, args=('child', ))
    doctor.start()
    while not path.exists() or not path.read_text():
        time.sleep(.1)
    doctor.kill()  # whatever it was that ended it
    check, other = path.read_text().split()
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
