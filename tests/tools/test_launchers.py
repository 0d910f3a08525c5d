"""The shell launchers, without Slurm; with it in tests/slurm."""
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from fork_server import ForkServer
from forked import Forked
from jobs import CONFIG, ROOT, run_train


def environment(**changes):
    """Like a user's, without a launcher's variables."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith('SLURM')}
    return {**kept, 'PYTHON': sys.executable, 'OMP_NUM_THREADS': '1',
            'PYTHONPATH': f'{ROOT / "tests/slurm"}:{ROOT}', **changes}


def command(script, *arguments, tools=ROOT / 'tools'):
    return ['bash', str(tools / script), *map(str, arguments)]


def launch(script, *arguments, tools=ROOT / 'tools', **changes):
    return subprocess.run(
        command(script, *arguments, tools=tools), cwd=ROOT, text=True,
        capture_output=True, env=environment(**changes))


def commanded(script, *arguments, **changes):
    """The words of the command that a launcher runs."""
    done = launch(script, *arguments, **changes)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def refused(script, *arguments, **changes):
    """The message of a launcher that starts nothing."""
    done = launch(script, *arguments, **changes)
    assert done.returncode == 2, done.stdout
    return done.stderr


def program(path, script):
    """A stand-in for a program; its folder."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'#!/bin/sh\n{script}\n')
    path.chmod(0o755)
    return path.parent


PRINT = 'printf "%s\\n" "$@"'


#: In the place of train.py. torch alone takes seconds to import.
RANK = '''
import os, signal, sys, time
from pathlib import Path
rank, what = int(os.environ['RANK']), sys.argv[3]
signals = [signal.SIGUSR1, signal.SIGUSR2]
if what == 'wait':
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
folder = Path(sys.argv[2])
(folder / f'{rank}.args').write_text(
    ' '.join([os.environ['WORLD_SIZE'], *sys.argv[1:]]))
while len(list(folder.glob('*.args'))) < 2:
    time.sleep(.05)
if what == 'wait':
    got = folder / f'{rank}.unfinished'
    got.write_text(signal.sigwait(signals).name)
    got.rename(folder / f'{rank}.got')
    # torchrun ends the other rank where one has ended.
    while len(list(folder.glob('*.got'))) < 2:
        time.sleep(.05)
    sys.exit(75)
if rank == 0:
    time.sleep(60)
os.kill(os.getpid(), signal.SIGKILL)
'''


@pytest.fixture
def tools(tmp_path):
    """A folder with the launchers, and ranks that train nothing."""
    folder = tmp_path / 'tools'
    folder.mkdir()
    for name in ('dist_train.sh', 'launch_common.sh', 'torchrun.py'):
        shutil.copy(ROOT / 'tools' / name, folder)
    (folder / 'train.py').write_text(RANK)
    return folder


@pytest.mark.core
def test_the_code_of_the_rank_that_was_killed(tmp_path, tools):
    with ForkServer(tools):
        done = launch('dist_train.sh', CONFIG, 2, tmp_path, 'kill',
                      tools=tools, PYTHON=str(tools / 'python'))
    assert done.returncode == 128 + signal.SIGKILL, done.stderr
    for rank in (0, 1):
        assert (tmp_path / f'{rank}.args').read_text() == (
            f'2 {CONFIG} {tmp_path} kill --launcher pytorch')


@pytest.mark.core
def test_signals_reach_every_rank(tmp_path, tools):
    """And that of a closed ssh none, under nohup."""
    with subprocess.Popen(
            ['nohup', *command('dist_train.sh', CONFIG, 2, tmp_path, 'wait',
                               tools=tools)], env=environment()) as process:
        for rank in (0, 1):
            wait_for(tmp_path / f'{rank}.args', process)
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGUSR1)
        assert process.wait(240) == 75
    assert [(tmp_path / f'{rank}.got').read_text()
            for rank in (0, 1)] == ['SIGUSR1'] * 2


def test_the_command_for_torchrun(tmp_path):
    python = dict(PYTHON=str(program(tmp_path / 'python', PRINT) / 'python'))
    assert commanded('dist_test.sh', CONFIG, 'c.pth', 2, '--out', 'o o.pkl',
                     **python) == [
        str(ROOT / 'tools/torchrun.py'), '--nnodes=1', '--nproc-per-node=2',
        '--rdzv-backend=c10d', '--rdzv-endpoint=127.0.0.1:0',
        str(ROOT / 'tools/test.py'), str(CONFIG), 'c.pth', '--out', 'o o.pkl',
        '--launcher', 'pytorch']
    several = dict(NNODES='2', NODE_RANK='1', MASTER_ADDR='n0', PORT='4711')
    assert commanded('dist_train.sh', CONFIG, 8, **several, **python)[1:] == [
        '--nnodes=2', '--nproc-per-node=8', '--node-rank=1',
        '--master-addr=n0', '--master-port=4711',
        str(ROOT / 'tools/train.py'), str(CONFIG), '--launcher', 'pytorch']


@pytest.mark.core
def test_a_signal_during_the_start_waits(tmp_path):
    """It comes while train.py reads the config."""
    config = tmp_path / 'config.py'
    config.write_text(f"_base_ = '{CONFIG}'\nimport os, signal\n"
                      'os.kill(os.getpid(), signal.SIGUSR1)\n')
    with Forked(tmp_path, run_train, config, '--work-dir',
                tmp_path / 'work') as process:
        assert process.wait(240) == 75, process.printed('stderr')
    assert (tmp_path / 'work/preempted_iter_1.pth').exists()


def wait_for(path, process, seconds=240):
    end = time.monotonic() + seconds
    while not path.exists() and process.poll() is None:
        assert time.monotonic() < end
        time.sleep(.1)


@pytest.fixture
def slurm(tmp_path):
    """Stand-ins that print how they were called."""
    program(tmp_path / 'bin/srun', PRINT)
    program(tmp_path / 'bin/sinfo', '''
case "$*" in *partition=gpu*) echo "gpu up";; *--format*) echo gpu; echo cpu;;
esac''')
    return f'{tmp_path}/bin:{os.environ["PATH"]}'


@pytest.mark.parametrize('script, arguments, settings, text', [
    ('dist_train.sh', [], {}, 'expected CONFIG GPUS'),
    ('dist_train.sh', ['nowhere.py', 2], {}, 'CONFIG: expected a file'),
    ('dist_train.sh', [CONFIG, 0], {}, 'GPUS: expected a number from 1 on'),
    ('slurm_train.sh', ['gold', 'j', CONFIG], {},
     'PARTITION: expected one of cpu gpu, got gold'),
    ('slurm_train.sh', ['gpu', 'j', CONFIG], dict(GPUS='12'),
     'GPUS: expected a multiple of GPUS_PER_NODE=8, got 12'),
    ('slurm_submit.sh', [CONFIG], {}, 'sbatch tools/slurm_submit.sh')])
def test_wrong_arguments(slurm, script, arguments, settings, text):
    assert text in refused(script, *arguments, PATH=slurm, **settings)


def test_the_command_for_slurm(slurm):
    assert commanded(
        'slurm_train.sh', 'gpu', 'my job', CONFIG, 'work dir', '--cfg-options',
        'a="[1, 2]"', PATH=slurm, GPUS='16',
        SRUN_ARGS='--exclude=n1 --qos=high') == [
        '--partition=gpu', '--job-name=my job', '--gres=gpu:8',
        '--ntasks=16', '--ntasks-per-node=8', '--cpus-per-task=5',
        '--kill-on-bad-exit=1', '--exclude=n1', '--qos=high', sys.executable,
        '-u', str(ROOT / 'tools/train.py'), str(CONFIG), '--work-dir',
        'work dir', '--cfg-options', 'a="[1, 2]"', '--launcher', 'slurm']


def test_the_command_of_a_submitted_job(slurm, tmp_path):
    """env holds back signals that come before Python runs."""
    job = dict(SLURM_JOB_ID='7', SLURM_NTASKS='2', SLURM_RESTART_COUNT='1',
               SLURM_SUBMIT_DIR=str(ROOT), PATH=slurm)
    assert commanded('slurm_submit.sh', CONFIG, '--work-dir', 'work dir',
                     **job) == [
        'slurm_submit: job 7, start 2, 2 ranks', '--kill-on-bad-exit=1',
        'env', '--block-signal=USR1', '--block-signal=USR2', sys.executable,
        '-u', str(ROOT / 'tools/train.py'), str(CONFIG), '--work-dir',
        'work dir', '--launcher', 'slurm', '--resume']
    assert 'every start resumes from the work dir' in refused(
        'slurm_submit.sh', CONFIG, '--resume', **job)
    # A task of an array has its line.
    lines = tmp_path / 'the lines.txt'
    lines.write_text(f"none.py\n{CONFIG} --work-dir 'work dir'\n")
    assert commanded('slurm_submit.sh', f'@{lines}', '--amp', **job,
                     SLURM_ARRAY_TASK_ID='2')[-7:] == [
        str(CONFIG), '--work-dir', 'work dir', '--amp', '--launcher', 'slurm',
        '--resume']
    for task, text in (('3', 'in line 3, got nothing'),
                       ('', 'expected a job array, got none')):
        assert text in refused('slurm_submit.sh', f'@{lines}', **job,
                               SLURM_ARRAY_TASK_ID=task)


def test_a_machine_without_slurm(tmp_path):
    for name in ('bash', 'dirname', 'basename', 'env'):
        (tmp_path / name).symlink_to(shutil.which(name))
    assert 'srun: expected Slurm, got a machine without it' in refused(
        'slurm_train.sh', 'gpu', 'j', CONFIG, PATH=str(tmp_path))
