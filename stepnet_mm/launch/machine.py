"""Checks the machine: its GPUs, Slurm, room on the disk."""
import importlib
import os
import shutil
import subprocess

from .report import Report


def check_devices(report: Report) -> None:
    """Whether torch, which must import, can use the GPUs that are there."""
    torch = importlib.import_module('torch')
    if not torch.cuda.is_available():
        _check_driver(report, torch)
        return
    for i in range(torch.cuda.device_count()):
        _check_gpu(report, torch.cuda, i)
    if not importlib.import_module('torch.distributed').is_nccl_available():
        report.warn('no NCCL', "set env_cfg.dist_cfg.backend='gloo'")


def check_slurm(report: Report) -> None:
    """Whether Slurm, where there is one, answers."""
    if shutil.which('srun') is None:
        report.ok('no Slurm here: tools/dist_train.sh is for one machine')
        return
    try:
        done = subprocess.run(
            ['sinfo', '--noheader', '--format=%R %t %D'], text=True,
            capture_output=True, timeout=20)
        problem = done.returncode and done.stderr.partition('\n')[0]
    except (OSError, subprocess.TimeoutExpired) as error:
        problem = str(error)
    if problem:
        report.warn(f'srun is there, but sinfo fails ({problem})',
                    'is the Slurm controller up, is SLURM_CONF right?')
    else:
        lines = '; '.join(done.stdout.split('\n')).strip('; ')
        report.ok(f'Slurm, partitions with state and nodes: {lines}')


def check_disk(report: Report, folder: str) -> None:
    """Whether checkpoints can be written to a folder, which may not exist."""
    there = os.path.abspath(folder)
    while not os.path.isdir(there):
        there = os.path.dirname(there)
    if not os.access(there, os.W_OK):
        report.error(f'{there} cannot be written', 'choose another --work-dir')
        return
    free = shutil.disk_usage(there).free / 2**30
    if free < 5:
        report.warn(f'{free:.1f} GiB free in {there}',
                    'a checkpoint of a detector takes about 0.4 GiB, and one '
                    'more than max_keep_ckpts must fit')
    else:
        report.ok(f'{free:.0f} GiB free in {there}')


def check_shared_memory(report: Report, folder: str = '/dev/shm') -> None:
    """Whether workers have room to hand over their batches, on Linux."""
    if not os.path.isdir(folder):
        return
    size = shutil.disk_usage(folder).total / 2**30
    if size < 1:
        report.warn(f'{size:.2f} GiB of shared memory in {folder}',
                    'workers of data loaders die there with a bus error: '
                    'docker run --ipc=host or --shm-size=8g, or num_workers=0')
    else:
        report.ok(f'{size:.0f} GiB of shared memory in {folder}')


def _check_driver(report: Report, torch) -> None:
    if shutil.which('nvidia-smi'):
        report.error(
            f'an NVIDIA driver, but torch {torch.__version__} sees no GPU',
            'is it a CPU build, is CUDA_VISIBLE_DEVICES empty, or the '
            f'driver older than CUDA {torch.version.cuda} needs?')
    else:
        report.warn('no GPU', 'training runs on CPU, with gloo')


def _check_gpu(report: Report, cuda, index: int) -> None:
    properties = cuda.get_device_properties(index)
    arch = f'sm_{properties.major}{properties.minor}'
    memory = properties.total_memory / 2**30
    report.ok(f'GPU {index}: {properties.name}, {memory:.0f} GiB, {arch}')
    if not any(a.startswith(f'sm_{properties.major}')
               for a in cuda.get_arch_list()):
        report.error(f'torch was not built for {arch}',
                     'install a build whose CUDA version knows it')
