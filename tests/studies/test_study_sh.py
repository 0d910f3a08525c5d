"""tools/study.sh, with a made runs.py and a made Snakemake."""
import fcntl
import os
import shutil
import signal
import subprocess
import sys

import pytest
from waiting import until

#: Prints its arguments; lists what the file `left` has; a run may wait.
RUNS = '''
import signal, sys, time
print(*sys.argv[1:], flush=True, file=sys.stderr)
if not sys.argv[-1].startswith('--run='):
    print('Could not import it')
    print(open('left').read(), end='')
    sys.exit(0)
if sys.argv[-1].startswith('--run=wait'):
    def save(*_):
        open('saved', 'a').write('.')
        time.sleep(.3)
        if open('deaf').read() == 'no':
            sys.exit(75)
    signal.signal(signal.SIGTERM, save)
    print('listens', flush=True)
    while True:
        time.sleep(.02)
sys.exit(3)
'''
#: Runs one after the other; a signal lets the present one end.
SNAKEMAKE = '''#!/usr/bin/env bash
echo "python $*"
trap stopped=yes HUP INT TERM
for run in $STUDY_RUNS; do [ "$stopped" ] || (one_run $run) || code=1; done
exit $code
'''


@pytest.fixture
def home(tmp_path, request):
    """A repository with a made runs.py, and a study."""
    folder = tmp_path / 'a repository'
    for name in ('tools/study.sh', 'tools/studies/install.sh',
                 'requirements/studies.txt'):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(request.config.rootpath / name, folder / name)
    (folder / 'tools/studies/runs.py').write_text(RUNS)
    # A Python of before 3.11, as far as it says.
    old = f'#!/bin/sh\n[ "$1" != -c ] || exit 1\nexec {sys.executable} "$@"\n'
    for name, text in {'.venv/studies/bin/python': SNAKEMAKE, **{
            f'bin/python{version}': old
            for version in ('', 3, 3.11, 3.12, 3.13)}}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    shutil.copy(folder / 'requirements/studies.txt',
                folder / '.venv/studies/.complete')
    for name, text in (('my study.py', ''), ('deaf', 'no'),
                       ('left', 'a_seed0: not begun\nb_seed1: begun\n')):
        (tmp_path / name).write_text(text)
    return folder


@pytest.fixture
def study(home, tmp_path, monkeypatch):
    """study(...): study.sh at work; `said` is its output."""
    monkeypatch.setenv('PATH', f'{home}/bin', prepend=os.pathsep)
    monkeypatch.delenv('PYTHON', raising=False)
    monkeypatch.delenv('STUDIES_VENV', raising=False)
    started = []

    def study(*words, code=None, says='listens'):
        with open(tmp_path / f'said{len(started)}', 'w') as file:
            process = subprocess.Popen(
                ['bash', home / 'tools/study.sh', *words], cwd=tmp_path,
                stdout=file, stderr=file, preexec_fn=heard)
        started.append(process)
        process.said = lambda: open(file.name).read()
        if code is None:
            until(lambda: says in process.said())
        else:
            assert process.wait(20) == code, process.said()
        return process

    yield study
    for process in started:
        process.kill()
        process.wait()


def heard():
    """A terminal's: nohup and & have some ignored."""
    for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
        signal.signal(number, signal.SIG_DFL)


def test_what_a_run_is_told(study):
    process = study('my study.py', 'methods=a,b', 'work_dir=the runs',
                    'records=r.jsonl', 'data_root=the data', code=1)
    called = 'my study.py the runs r.jsonl --methods=a,b --data-root=the data'
    first, engine, *runs = process.said().splitlines()
    assert [first, *runs] == [
        called, f'{called} --run=a_seed0', f'{called} --run=b_seed1']
    assert engine.startswith('python -m snakemake ')


def test_without_a_snakemake(study, home):
    shutil.rmtree(home / '.venv')
    assert 'study: expected Snakemake, got none; make an environment' in study(
        'my study.py', code=2).said()


@pytest.mark.parametrize('words, code, message', [
    (('my study.py', '-n'), 0, 'jsonl\na_seed0: not begun\nb_seed1: begun\n'),
    ((), 2, "expected a study file, got ''"),
    (('gone.py', '-n'), 2, "expected a study file, got 'gone.py'"),
    (('my study.py', 'jobs=2'), 2, 'sbatch=VALUE, got jobs=2'),
    (('my study.py', 'methods='), 2, 'got methods=;')])
def test_nothing_runs(study, tmp_path, words, code, message):
    assert message in study(*words, code=code).said()
    assert not (tmp_path / 'work_dirs').exists()


def test_nothing_is_left(study, tmp_path):
    (tmp_path / 'left').write_text('')
    assert 'nothing is left: all runs have their records in r.jsonl' in study(
        'my study.py', 'records=r.jsonl', code=0).said()


def test_a_signal_is_for_the_trainings_too_and_a_second_kills(study, tmp_path):
    (tmp_path / 'left').write_text('wait_seed0: begun\na_seed0: begun\n')
    for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
        process = study('my study.py')
        assert 'expected no other study.sh at work in' in study(
            'my study.py', code=2).said()
        process.send_signal(number)
        assert process.wait(20) == 128 + number
        assert 'a_seed0' not in process.said()
    assert (tmp_path / 'saved').read_text() == '...'
    (tmp_path / 'saved').unlink()
    (tmp_path / 'deaf').write_text('yes')
    process = study('my study.py')
    process.terminate()
    until((tmp_path / 'saved').exists)
    process.terminate()
    assert process.wait(20) == 143


def test_what_outlived_a_killed_one_is_waited_for(study, tmp_path):
    """It holds the lock, as a tool does that the made runs.py was."""
    lock = tmp_path / 'work_dirs/my study/a_seed0/run.lock'
    lock.parent.mkdir(parents=True)
    with open(lock, 'w') as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        process = study('my study.py',
                        says='a_seed0: waits for what a killed study.sh')
        assert '--run' not in process.said()
    assert process.wait(20) == 1
    assert '--run=a_seed0\n' in process.said()


def test_what_snakemake_is_told(study, tmp_path):
    old = tmp_path / 'work_dirs/my study/engine/a_seed0.recorded'
    old.parent.mkdir(parents=True)
    old.touch()
    for given, told in ((), '-j 1'), (('-j', '4', '-k'), '-j 4 -k'):
        said = study('my study.py', *given, code=1).said()
        assert f'--quiet all {told}\n' in said
    assert not old.exists()
