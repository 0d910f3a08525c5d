"""The doctor checks all in turn; whatever a check does, the next one runs."""
import json
import multiprocessing
import re

import psutil
import pytest
from waiting import until

from stepnet_mm.doctor import __main__ as doctor
from stepnet_mm.doctor import process

#: Checks that a process of its own imports.
CHECKS = '''
import os, subprocess, time
FINE = dict(level='ok', text='fine')
def fine(argument):
    yield dict(FINE, text=f"{argument}, {os.environ['CUDA_VISIBLE_DEVICES']}")
def crash(argument):
    yield FINE
    os.abort()
def hang(argument):
    yield FINE
    time.sleep(60)
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
    """run(name, seconds) -> the level and text of each of its rows."""
    (tmp_path / 'made_checks.py').write_text(CHECKS)
    monkeypatch.setenv('PYTHONPATH', str(tmp_path))
    monkeypatch.setenv('PIDS', str(tmp_path / 'numbers'))

    def run(name, seconds=60, device='cpu', argument='given'):
        found = process.run(f'made_checks:{name}', argument, device, seconds,
                            600)
        return [(row['level'], row['text'].removeprefix(f'{name}: '))
                for row in found]

    return run


@pytest.mark.parametrize('device, visible', [('cpu', ''), ('cuda', '2,3')])
def test_argument_and_gpus_of_a_check(run, monkeypatch, device, visible):
    monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '2,3')
    assert run('fine', device=device) == [('ok', f'given, {visible}')]


@pytest.mark.parametrize('name, seconds, why', [
    ('crash', 60, r'ended by SIGABRT in File ".*made_checks.py", line 8 in'),
    ('fail', 60, 'RuntimeError: an illegal memory access: '),
    ('hang', 3, 'not done in 3 s: ')])
def test_a_check_that_ends_keeps_its_rows(run, name, seconds, why):
    fine, (level, text) = run(name, seconds)
    assert (fine, level) == (('ok', 'fine'), 'error')
    assert re.match(why, text)


def test_a_check_leaves_no_process_and_ends_with_the_doctor(run, tmp_path):
    path = tmp_path / 'numbers'
    assert run('child') == [('ok', 'fine')]
    check_ended(path)
    path.unlink()
    killed = multiprocessing.get_context('fork').Process(
        target=run, args=('child', ), kwargs=dict(argument='wait'))
    killed.start()
    until(lambda: path.exists() and path.read_text())
    killed.kill()  # whatever it was that ended it
    check_ended(path)


def check_ended(path):
    """The processes whose numbers are in a file end soon."""
    until(lambda: not any(map(alive, path.read_text().split())), 20)


def alive(number):
    try:
        return psutil.Process(int(number)).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.core
@pytest.mark.long
@pytest.mark.parametrize('device', [
    'cpu', pytest.param('cuda', marks=pytest.mark.gpu)])
def test_the_whole(device, tmp_path, capsys):
    path = tmp_path / 'found.json'
    code = doctor.main(
        ['--device', device, '--json', str(path), '--seconds', '900'])
    found = json.loads(path.read_text())
    said = capsys.readouterr().out
    assert code == 0 and found['finished'], found['rows']
    assert f'\n{found["counts"]["ok"]} ok; ' in said
    about, = [row for row in found['rows'] if 'environment' in row]
    assert about['versions']['torch'] and about['commit']
    assert 'mmpretrain: a tiny StepResNet trains, is saved' in said
    names = {row['text'].partition(':')[0] for row in found['rows']}
    assert {check.rpartition(':')[2] for check in doctor.DEVICE} < names
