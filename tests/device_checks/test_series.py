"""Whatever a check does, its series goes on and says so."""
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from stepnet_mm import doctor
from stepnet_mm.device_checks import child, cost, series
from stepnet_mm.launch.report import Report

#: Programs in place of a check; the file of its rows is sys.argv[1].
ROW = ("import json, sys; open(sys.argv[1], 'w').write("
       "json.dumps(dict(level='ok', text='fine')) + chr(10)); ")
PROGRAMS = dict(
    fine=ROW,
    crash=ROW + 'import os; os.abort()',
    hang=ROW + 'import time; time.sleep(60)',
    exit='sys = __import__("sys"); print("out of memory"); sys.exit(3)')


@pytest.fixture
def run(monkeypatch):
    """run(name, ..., seconds=) -> the report of these programs."""

    def command(name, device, rows):
        # Without site-packages: on a busy machine they alone take a second.
        return [sys.executable, '-IS', '-c', PROGRAMS[name], str(rows)]

    def run(*names, seconds=100, limit=20):
        monkeypatch.setattr(series, '_command', command)
        monkeypatch.setattr(series, 'CHECKS', dict.fromkeys(names, limit))
        report = Report()
        series.run_checks(report, 'cpu', seconds)
        return report

    return run


def of(report):
    return [(row['check'], row['level'], row['text'].partition(': ')[2])
            for row in report.rows]


def test_a_crash_stops_no_other_check_and_keeps_its_rows(run):
    rows = of(run('crash', 'exit', 'fine'))
    assert rows[0] == ('crash', 'ok', 'fine')
    assert rows[1][:2] == ('crash', 'error')
    assert rows[1][2].startswith('ended by SIGABRT: please report it')
    assert rows[2][:2] == ('exit', 'error')
    assert rows[2][2].startswith('ended with code 3 (out of memory): ')
    assert rows[3:] == [('fine', 'ok', 'fine')]


def test_a_check_that_hangs_is_ended(run):
    start = time.monotonic()
    rows = of(run('hang', 'fine', limit=1))
    assert time.monotonic() - start < 20
    assert [row[:2] for row in rows] == [
        ('hang', 'ok'), ('hang', 'error'), ('fine', 'ok')]
    assert rows[1][2].startswith('not done after 1 s: ')


def test_the_end_of_the_whole_time(run, monkeypatch):
    now = 0.

    def run_process(command, device, log, limit):
        nonlocal now
        now += limit

    monkeypatch.setattr(series, '_run_process', run_process)
    monkeypatch.setattr(series, 'time', SimpleNamespace(monotonic=lambda: now))
    assert of(run('hang', 'fine', seconds=1.9)) == [
        # No error: on a sound machine a compiler may take minutes.
        ('hang', 'warning', 'not done in the 2 s that were left: set a '
         'higher --seconds'),
        ('fine', 'warning', 'not checked, the 1.9 s are over: set a higher '
         '--seconds')]
    assert now == 1.9  # not the check's own limit


def test_nothing_is_tried_on_a_device_that_is_not_there(monkeypatch):
    report = Report()
    monkeypatch.setattr(series, '_run_check', lambda report, name, *_: (
        report.add('error', f'{name}: none', check=name)))
    series.run_checks(report, 'cuda', 10)
    assert of(report) == [('device', 'error', 'none')]


@pytest.fixture
def tried(monkeypatch, tmp_path):
    """tried(function) -> the rows of a check that is that function."""

    def tried(function):
        monkeypatch.setitem(
            sys.modules, 'stepnet_mm.device_checks.faked',
            SimpleNamespace(check=function))
        child.run('faked', 'cpu', tmp_path / 'rows')
        lines = (tmp_path / 'rows').read_text().splitlines()
        return [(row['level'], row['text']) for row in map(json.loads, lines)]

    return tried


def test_what_a_check_raises_is_a_row_behind_the_others(tried):
    def check(report, device):
        report.ok(f'on {device}')
        raise RuntimeError('an illegal\nmemory access')

    ok, error = tried(check)
    assert ok == ('ok', 'on cpu')
    assert error[0] == 'error'
    assert error[1].startswith('RuntimeError: an illegal memory access: '
                               'please report it')


def test_the_rows_so_far_are_in_the_file(run, tmp_path, monkeypatch):
    monkeypatch.setattr(series, 'CHECKS', dict(fine=9, more=9))
    report, found = Report(), []
    path = tmp_path / 'found.json'

    def save():
        series.write_json(path, report, [], finished=False)
        found.append(json.loads(path.read_text()))

    series.run_checks(report, 'cpu', 0, save)
    assert [len(one['rows']) for one in found] == [1, 2]
    assert not found[-1]['finished']


def test_a_file_that_cannot_be_written_is_told_at_once(tmp_path, capsys):
    (tmp_path / 'file').touch()
    for path in (tmp_path / 'file' / 'a.json', '/dev/full'):
        with pytest.raises(SystemExit):
            doctor.main(['--device', 'cpu', '--json', str(path)])
        assert not capsys.readouterr().out


@pytest.mark.parametrize('device', ['cuda:-1', 'gpu', ''])
def test_a_device_that_is_none(device, capsys):
    with pytest.raises(SystemExit):
        doctor.main(['--device', device])
    assert f'cuda:1, ... or cpu, got {device!r}' in capsys.readouterr().err


@pytest.mark.parametrize('visible, device, expected', [
    (None, 'cuda:1', '1'), ('2,GPU-5', 'cuda:1', 'GPU-5'),
    ('2,GPU-5', 'cuda:2', ''), (None, 'cpu', '')])
def test_the_gpus_that_a_check_sees(monkeypatch, visible, device, expected):
    monkeypatch.delenv('CUDA_VISIBLE_DEVICES', raising=False)
    if visible is not None:
        monkeypatch.setenv('CUDA_VISIBLE_DEVICES', visible)
    found = series._environment(device)
    assert found.get('CUDA_VISIBLE_DEVICES') == expected
    assert series._command('cost', device, 'rows')[-2] in ('cpu', 'cuda')


#: A check that has started something and hangs.
HANGING = '''
import subprocess, time
from stepnet_mm.device_checks.child import end_with_the_doctor
end_with_the_doctor()
subprocess.Popen(['sleep', '60'])
print('on', flush=True)
time.sleep(60)
'''


def test_a_check_ends_with_the_doctor():
    process = subprocess.Popen(
        [sys.executable, '-c', HANGING], text=True, start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env=dict(os.environ, PYTHONPATH=os.getcwd()))
    assert process.stdout.readline() and process.poll() is None
    # As the kernel does where the doctor is killed, in whatever way.
    process.stdin.close()
    assert process.wait(20) == -signal.SIGKILL
    start = time.monotonic()
    assert not process.stdout.read()  # ends when all that have it have ended
    assert time.monotonic() - start < 20


def test_no_test_sees_a_gpu():
    """But those that are marked; a fork of the others trains on the CPU."""
    assert os.environ['CUDA_VISIBLE_DEVICES'] == ''
    assert not torch.cuda.is_available()


@pytest.mark.long
def test_a_machine_without_a_gpu(tmp_path, capsys):
    path = tmp_path / 'found.json'
    assert doctor.main(['--device', 'cuda', '--json', str(path)]) == 1
    text = capsys.readouterr().out
    assert 'error    device: no GPU that torch can use: ' in text
    assert 'kernels' not in text
    found = json.loads(path.read_text())
    assert found['counts']['error'] == 1
    assert found['rows'][-1]['check'] == 'device'


@pytest.mark.long
def test_the_whole_on_a_cpu(tmp_path, capsys, monkeypatch):
    """Most checks in this process, which is quicker.

    `ddp` forks, which a process with threads must not; the first shows that a
    process of its own works.
    """
    run_process = series._run_process

    def run(command, *args):
        *_, name, device, rows = command
        if name in ('device', 'ddp'):
            return run_process(command, *args)
        child.run(name, device, Path(rows))
        return 0

    monkeypatch.setattr(series, '_run_process', run)
    monkeypatch.setattr(cost, 'ROUNDS', 2)
    path = tmp_path / 'found.json'
    code = doctor.main(
        ['--device', 'cpu', '--json', str(path), '--seconds', '900'])
    text = capsys.readouterr().out
    assert code == 0, text
    found = json.loads(path.read_text())
    assert {row.get('check') for row in found['rows']} - {None} == set(
        series.CHECKS)
    assert found['versions']['torch'] and found['commit']
    assert 'fused tail' in text and found['finished']


@pytest.mark.gpu
def test_the_whole_on_a_gpu(tmp_path, capsys):
    path = tmp_path / 'found.json'
    code = doctor.main(
        ['--device', 'cuda', '--json', str(path), '--seconds', '900'])
    assert code == 0, capsys.readouterr().out
    assert json.loads(path.read_text())['gpus']
