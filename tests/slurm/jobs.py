"""Jobs on the lab, and what they leave behind."""
import glob
import json
import os
import re
import runpy
import sys
import tempfile
from pathlib import Path

import torch
from forked import Forked
from lab import free_ports
from resume_run import assert_same

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CONFIG = HERE / 'toy_config.py'
ENVIRONMENT = dict(
    PYTHON=sys.executable, PYTHONPATH=str(HERE), OMP_NUM_THREADS='1')


def submit(lab, work_dir, *options, sbatch=(), ranks=2):
    """Submit the toy training with slurm_submit.sh; the job's number."""
    Path(work_dir).mkdir(parents=True, exist_ok=True)
    text = lab.run(
        'sbatch', f'--ntasks={ranks}', f'--nodes={ranks}',
        f'--chdir={ROOT}', f'--output={work_dir}/job-%j.log', *sbatch,
        ROOT / 'tools/slurm_submit.sh', CONFIG, '--work-dir', work_dir,
        *options, STEPNET_MM=str(ROOT), **ENVIRONMENT)
    return re.search(r'\d+', text).group()


def options(**settings):
    """Changes to the toy config."""
    return ['--cfg-options', *(f'{k}={v}' for k, v in settings.items())]


def train_in_forks(work_dir, *arguments, code=0):
    """The toy training on two ranks, without a launcher and its start-ups.

    Both end with the exit code; what each of them wrote to stderr.
    """
    port, = free_ports(1)
    with tempfile.TemporaryDirectory() as folder:
        outputs = [Path(folder) / str(rank) for rank in (0, 1)]
        for path in outputs:
            path.mkdir()
        ranks = [Forked(path, _train, path.name, port,
                        [CONFIG, '--work-dir', work_dir, *arguments])
                 for path in outputs]
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


def log_of(work_dir):
    """What the jobs of a work dir printed."""
    paths = sorted(glob.glob(f'{work_dir}/job-*.log'), key=os.path.getmtime)
    return '\n'.join(Path(path).read_text() for path in paths)


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


def differing(whole, end):
    """The parts of two checkpoints that are not the same bit for bit."""
    parts = []
    for key in ('state_dict', 'ema_state_dict', 'optimizer',
                'param_schedulers'):
        try:
            assert_same(whole[key], end[key], key)
        except AssertionError:
            parts.append(key)
    return parts


def tns_steps(work_dir):
    """The iterations at which TNS was logged to the visualizer's file."""
    lines = [json.loads(line)
             for path in glob.glob(f'{work_dir}/*/vis_data/stiffness.json')
             for line in Path(path).read_text().splitlines()]
    return sorted({line['step'] for line in lines if 'stiffness/tns' in line})


def ranks_of(work_dir):
    """Process numbers of the ranks that train into a folder."""
    found = []
    for path in glob.glob('/proc/[0-9]*/cmdline'):
        try:
            words = Path(path).read_bytes().split(b'\0')
            parent = Path(path).with_name('stat').read_text().split()[3]
        except OSError:
            continue
        if (str(work_dir).encode() in words and b'-u' in words
                and b'python' in os.path.basename(words[0])):
            found.append((int(path.split('/')[2]), int(parent)))
    numbers = {number for number, _ in found}
    # Workers of the loader are forks and have the same command line.
    return [number for number, parent in found if parent not in numbers]
