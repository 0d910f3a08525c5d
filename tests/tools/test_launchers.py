"""The shell launchers, without Slurm; with it in tests/slurm."""
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.core, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / 'tests/slurm/toy_config.py'
SHORT = ['--cfg-options', 'train_cfg.max_epochs=1']


def environment(**changes):
    """Like a user's, without a launcher's variables."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith('SLURM')}
    return {**kept, 'PYTHON': sys.executable, 'OMP_NUM_THREADS': '1',
            'PYTHONPATH': str(ROOT / 'tests/slurm'), **changes}


def command(script, *arguments):
    return ['bash', str(ROOT / 'tools' / script), *map(str, arguments)]


def launch(script, *arguments, **changes):
    return subprocess.run(command(script, *arguments), cwd=ROOT, text=True,
                          capture_output=True, env=environment(**changes))


def test_two_ranks_on_cpu(tmp_path):
    done = launch('dist_train.sh', CONFIG, 2, '--work-dir', tmp_path, *SHORT)
    assert done.returncode == 0, done.stderr
    pointer = (tmp_path / 'last_checkpoint').read_text()
    assert pointer.endswith('iter_13.pth')  # 100 images, 2 ranks, batches of 4
    test = launch('dist_test.sh', CONFIG, pointer, 2, '--work-dir', tmp_path)
    assert test.returncode == 1
    assert 'test_dataloader' in test.stderr  # the toy config has none


def test_a_rank_that_fails_is_named_first(tmp_path):
    done = launch(
        'dist_train.sh', CONFIG, 2, '--work-dir', tmp_path, *SHORT,
        'default_hooks.fail.type=FailingHook', 'default_hooks.fail.rank=1',
        'default_hooks.fail.at=7')
    assert done.returncode == 1
    first = done.stderr.index('rank 1 of 2 on ')
    assert 'RuntimeError: the disk of this rank is gone' in done.stderr[first:]
    if 'rank 0 of 2 on ' in done.stderr:
        assert first < done.stderr.index('rank 0 of 2 on ')


def test_a_rank_that_is_killed_gives_its_code(tmp_path):
    done = launch(
        'dist_train.sh', CONFIG, 2, '--work-dir', tmp_path, *SHORT,
        'default_hooks.fail.type=FailingHook', 'default_hooks.fail.rank=1',
        'default_hooks.fail.at=7', 'default_hooks.fail.kill=True')
    assert done.returncode == 128 + signal.SIGKILL


def test_a_preempted_run_leaves_with_75_and_goes_on(tmp_path):
    slow = ['default_hooks.slow.type=SlowHook',
            'default_hooks.slow.seconds=.5']
    with subprocess.Popen(
            command('dist_train.sh', CONFIG, 2, '--work-dir', tmp_path,
                    *SHORT, *slow), cwd=ROOT, text=True, env=environment(),
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        wait_for(tmp_path / 'iter_5.pth', process)
        process.send_signal(signal.SIGUSR1)
        assert process.wait(60) == 75, process.stderr.read()
    assert list(tmp_path.glob('preempted_iter_*.pth'))
    done = launch('dist_train.sh', CONFIG, 2, '--work-dir', tmp_path,
                  '--resume', *SHORT)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / 'iter_13.pth').exists()


def wait_for(path, process, seconds=120):
    end = time.monotonic() + seconds
    while not path.exists() and process.poll() is None:
        assert time.monotonic() < end
        time.sleep(.1)


def test_a_port_that_is_taken(tmp_path):
    with socket.socket() as other:
        other.bind(('0.0.0.0', 0))
        other.listen()
        port = other.getsockname()[1]
        done = launch('dist_train.sh', CONFIG, 2, '--work-dir', tmp_path,
                      PORT=str(port))
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f'torchrun: error: port {port} is taken')


@pytest.mark.parametrize('arguments, text', [
    ([], 'expected CONFIG GPUS'),
    (['nowhere.py', 2], 'no config file nowhere.py'),
    ([CONFIG, 'two'], 'GPUS=two: expected a number'),
    ([CONFIG, 0], 'GPUS=0: expected a number from 1 on'),
])
def test_wrong_arguments(arguments, text):
    done = launch('dist_train.sh', *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith('dist_train.sh: error: ')
    assert text in done.stderr


def test_several_machines_need_an_address():
    done = launch('dist_train.sh', CONFIG, 2, NNODES='2')
    assert done.returncode == 2 and 'set MASTER_ADDR' in done.stderr


def test_no_python():
    done = launch('dist_train.sh', CONFIG, 2, PYTHON='nowhere')
    assert done.returncode == 2 and 'no interpreter nowhere' in done.stderr


@pytest.fixture
def slurm(tmp_path):
    """Stand-ins that print how they were called."""
    folder = tmp_path / 'bin'
    folder.mkdir()
    scripts = dict(srun='printf "%s\\n" "$@"', sinfo='''
case "$*" in *partition=gpu*) echo "gpu up";; *--format*) echo gpu; echo cpu;;
esac''')
    for name, script in scripts.items():
        (folder / name).write_text(f'#!/bin/sh\n{script}\n')
        (folder / name).chmod(0o755)
    return f'{folder}:{os.environ["PATH"]}'


def test_the_command_for_slurm(slurm):
    done = launch('slurm_train.sh', 'gpu', 'my job', CONFIG, 'work dir',
                  '--cfg-options', 'a="[1, 2]"', PATH=slurm, GPUS='16',
                  SRUN_ARGS='--exclude=n1 --qos=high')
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        '--partition=gpu', '--job-name=my job', '--gres=gpu:8',
        '--ntasks=16', '--ntasks-per-node=8', '--cpus-per-task=5',
        '--kill-on-bad-exit=1', '--exclude=n1', '--qos=high', sys.executable,
        '-u', str(ROOT / 'tools/train.py'), str(CONFIG), '--work-dir',
        'work dir', '--cfg-options', 'a="[1, 2]"', '--launcher', 'slurm'
    ]


def test_a_small_job_on_cpus(slurm):
    done = launch('slurm_train.sh', 'gpu', 'j', CONFIG, '--resume',
                  PATH=slurm, GPUS='2', GRES='')
    lines = done.stdout.splitlines()
    assert not [line for line in lines if 'gres' in line]
    assert '--ntasks-per-node=2' in lines
    assert lines[-3:] == ['--resume', '--launcher', 'slurm']


def test_the_test_for_slurm(slurm):
    done = launch('slurm_test.sh', 'gpu', 'j', CONFIG, 'c.pth', '--out',
                  'o.pkl', PATH=slurm)
    assert done.stdout.splitlines()[-7:] == [
        str(ROOT / 'tools/test.py'), str(CONFIG), 'c.pth', '--out', 'o.pkl',
        '--launcher', 'slurm'
    ]


@pytest.mark.parametrize('partition, settings, text', [
    ('gold', {}, 'no partition gold; there are: cpu gpu'),
    ('gpu', dict(GPUS='12'), 'GPUS=12 is not divisible by GPUS_PER_NODE=8'),
    ('gpu', dict(GPUS='many'), 'GPUS=many: expected a number'),
])
def test_wrong_jobs(slurm, partition, settings, text):
    done = launch('slurm_train.sh', partition, 'j', CONFIG, PATH=slurm,
                  **settings)
    assert done.returncode == 2 and text in done.stderr


def test_a_machine_without_slurm(tmp_path):
    for name in ('bash', 'dirname', 'basename', 'env'):
        (tmp_path / name).symlink_to(
            subprocess.run(['which', name], text=True, capture_output=True
                           ).stdout.strip())
    done = launch('slurm_train.sh', 'gpu', 'j', CONFIG, PATH=str(tmp_path))
    assert done.returncode == 2
    assert 'no srun: this machine has no Slurm' in done.stderr
    submit = launch('slurm_submit.sh', CONFIG)
    assert submit.returncode == 2
    assert 'sbatch tools/slurm_submit.sh' in submit.stderr
