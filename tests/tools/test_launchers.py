"""The shell launchers, without Slurm; with it in tests/slurm."""
import os
import shutil
import signal
import subprocess
import sys

import pytest
from fork_server import ForkServer
from forked import Forked
from jobs import CONFIG, ENVIRONMENT, ROOT, run_train
from waiting import until

PRINT = 'printf "%s\\n" "$@"'
SINFO = '''
case "$*" in *partition=gpu*) echo "gpu up";; *--format*) echo gpu; echo cpu;;
esac'''
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


def environment(**changes):
    """Like a user's, without a launcher's variables."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith('SLURM')}
    return {**kept, **ENVIRONMENT, **changes}


def launch(script, *arguments, code=0, tools=ROOT / 'tools', **changes):
    """The lines that a launcher prints, or its error."""
    done = subprocess.run(
        ['bash', tools / script, *map(str, arguments)], cwd=ROOT, text=True,
        capture_output=True, env=environment(**changes))
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout.splitlines()


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
        launch('dist_train.sh', CONFIG, 2, tmp_path, 'kill', tools=tools,
               PYTHON=str(tools / 'python'), code=128 + signal.SIGKILL)
    for rank in (0, 1):
        assert (tmp_path / f'{rank}.args').read_text() == (
            f'2 {CONFIG} {tmp_path} kill --launcher pytorch')


@pytest.mark.core
def test_signals_reach_every_rank(tmp_path, tools):
    """And that of a closed ssh none, under nohup."""
    with subprocess.Popen(
            ['nohup', 'bash', tools / 'dist_train.sh', CONFIG, '2', tmp_path,
             'wait'], env=environment()) as process:
        until(lambda: len([*tmp_path.glob('*.args')]) == 2)
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGUSR1)
        assert process.wait(240) == 75
    assert [(tmp_path / f'{rank}.got').read_text()
            for rank in (0, 1)] == ['SIGUSR1'] * 2


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


@pytest.fixture
def slurm(tmp_path):
    """A PATH with programs that print how they were called."""
    folder = tmp_path / 'bin'
    folder.mkdir()
    for name, script in dict(srun=PRINT, python=PRINT, sinfo=SINFO).items():
        (folder / name).write_text(f'#!/bin/sh\n{script}\n')
        (folder / name).chmod(0o755)
    return f'{folder}:{os.environ["PATH"]}'


def test_the_command_for_torchrun(slurm):
    python = dict(PYTHON='python', PATH=slurm)
    assert launch('dist_test.sh', CONFIG, 'c.pth', 2, '--out', 'o o.pkl',
                  **python) == [
        str(ROOT / 'tools/torchrun.py'), '--nnodes=1', '--nproc-per-node=2',
        '--rdzv-backend=c10d', '--rdzv-endpoint=127.0.0.1:0',
        str(ROOT / 'tools/test.py'), str(CONFIG), 'c.pth', '--out', 'o o.pkl',
        '--launcher', 'pytorch']
    several = dict(NNODES='2', NODE_RANK='1', MASTER_ADDR='n0', PORT='4711')
    assert launch('dist_train.sh', CONFIG, 8, **several, **python)[1:6] == [
        '--nnodes=2', '--nproc-per-node=8', '--node-rank=1',
        '--master-addr=n0', '--master-port=4711']


@pytest.mark.parametrize('script, arguments, settings, text', [
    ('dist_train.sh', ['nowhere.py', 2], {}, 'CONFIG: expected a file'),
    ('slurm_train.sh', ['gold', 'j', CONFIG], {},
     'PARTITION: expected one of cpu gpu, got gold'),
    ('slurm_train.sh', ['gpu', 'j', CONFIG], dict(GPUS='12'),
     'GPUS: expected a multiple of GPUS_PER_NODE=8, got 12'),
    ('slurm_submit.sh', [CONFIG], {}, 'sbatch tools/slurm_submit.sh')])
def test_wrong_arguments(slurm, script, arguments, settings, text):
    assert text in launch(script, *arguments, PATH=slurm, code=2, **settings)


def test_the_command_for_slurm(slurm):
    assert launch(
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
    assert 'every start resumes from the work dir' in launch(
        'slurm_submit.sh', CONFIG, '--resume', code=2, **job)
    # A task of an array has its line.
    lines = tmp_path / 'the lines.txt'
    lines.write_text(f"none.py\n{CONFIG} --work-dir 'work dir'\n")
    assert launch('slurm_submit.sh', f'@{lines}', '--amp', **job,
                  SLURM_ARRAY_TASK_ID='2') == [
        'slurm_submit: job 7, start 2, 2 ranks', '--kill-on-bad-exit=1',
        'env', '--block-signal=USR1', '--block-signal=USR2', sys.executable,
        '-u', str(ROOT / 'tools/train.py'), str(CONFIG), '--work-dir',
        'work dir', '--amp', '--launcher', 'slurm', '--resume']
    assert 'in line 3, got nothing' in launch(
        'slurm_submit.sh', f'@{lines}', **job, SLURM_ARRAY_TASK_ID='3', code=2)
