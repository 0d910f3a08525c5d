"""Jobs on the lab, and what they leave behind."""
import os
import re
import runpy
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path

import torch
from forked import Forked
from lab import free_ports
from resume_run import assert_same

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CONFIG = HERE / 'toy_config.py'
ENVIRONMENT = dict(
    PYTHON=sys.executable, OMP_NUM_THREADS='1',
    PYTHONPATH=f'{ROOT}:{HERE}:{ROOT}/tests/resume')


def submit(lab, work_dir, *options, sbatch=()):
    """Submit the toy training with slurm_submit.sh; the job's number."""
    return lab.run(
        'sbatch', '--parsable', '--ntasks=2', '--nodes=2', f'--chdir={ROOT}',
        f'--output={work_dir}/job.log', *sbatch,
        ROOT / 'tools/slurm_submit.sh', CONFIG, '--work-dir', work_dir,
        *options, STEPNET_MM=str(ROOT), **ENVIRONMENT)


@contextmanager
def ranks_in_forks(work_dir, *arguments):
    """The toy training on two ranks, without a launcher and its start-ups."""
    port, = free_ports(1)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as ranks:
        outputs = [Path(folder) / str(rank) for rank in (0, 1)]
        for path in outputs:
            path.mkdir()
        yield [ranks.enter_context(Forked(
            path, _train, path.name, port,
            [CONFIG, '--work-dir', work_dir, *arguments]))
            for path in outputs]


def train_in_forks(work_dir, *arguments, code=0):
    """Train to the end; what each rank wrote to stderr.

    Both end with the exit code.
    """
    with ranks_in_forks(work_dir, *arguments) as ranks:
        codes = [rank.wait(400) for rank in ranks]
        said = [rank.printed('stderr') for rank in ranks]
        assert codes == [code, code], said
        return said


def _train(rank, port, arguments):
    os.environ.update(
        RANK=rank, LOCAL_RANK=rank, WORLD_SIZE='2', MASTER_ADDR='127.0.0.1',
        MASTER_PORT=str(port))
    run_train(*arguments, '--launcher', 'pytorch')


def run_train(*arguments):
    """tools/train.py in this process, which should be a fork."""
    sys.argv = ['train.py', *map(str, arguments)]
    runpy.run_path(str(ROOT / 'tools/train.py'), run_name='__main__')


def iteration(work_dir):
    """The one that the last checkpoint has behind it."""
    pointer = Path(work_dir) / 'last_checkpoint'
    found = pointer.exists() and re.search(
        r'iter_(\d+)\.pth', pointer.read_text())
    return int(found.group(1)) if found else 0


def saved(work_dir):
    """The last checkpoint."""
    path = (Path(work_dir) / 'last_checkpoint').read_text()
    return torch.load(path, weights_only=False)


def assert_same_end(whole, end):
    """Two checkpoints are the same bit for bit."""
    for key in ('state_dict', 'ema_state_dict', 'optimizer',
                'param_schedulers'):
        assert_same(whole[key], end[key], key)
