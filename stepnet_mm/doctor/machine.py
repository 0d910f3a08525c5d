"""Checks the machine: GPUs, Slurm, disk, a config and its datasets."""
import os
import re
import shutil
from argparse import ArgumentTypeError
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..utils.command_line import existing_folder
from ..utils.slurm_requeue import slurm_command
from . import versions
from .report import attempt, one_line, row


def check(work_dir: str) -> Iterator[dict]:
    """Slurm, and room for checkpoints and batches."""
    yield slurm()
    yield disk(work_dir)
    if os.path.isdir('/dev/shm'):
        yield shared_memory('/dev/shm')


def slurm() -> dict:
    """Whether Slurm, where there is one, answers."""
    if shutil.which('srun') is None:
        return row('ok', 'no Slurm here')
    try:
        found = slurm_command('sinfo', '--noheader', '--format=%R %t %D')
    except RuntimeError as error:
        return row('warning', f'{one_line(error)}: is the Slurm controller '
                   'up, is SLURM_CONF right?')
    return row('ok', 'Slurm, partitions with state and nodes: '
               + '; '.join(found.splitlines()))


def disk(work_dir: str) -> dict:
    """Whether checkpoints can be written to a folder, which may not exist."""
    try:
        there = existing_folder(Path(work_dir).absolute())
    except ArgumentTypeError as error:
        return row('error', f'--work-dir: {error}')
    free = shutil.disk_usage(there).free / 2**30
    if free < 5:
        return row('warning', f'{free:.1f} GiB free in {there}: a checkpoint '
                   'of a detector takes about 0.4 GiB, and one more than '
                   'max_keep_ckpts must fit')
    return row('ok', f'{free:.0f} GiB free in {there}')


def shared_memory(folder: str) -> dict:
    """Whether workers have room to hand over their batches."""
    size = shutil.disk_usage(folder).total / 2**30
    if size < 1:
        return row('warning', f'{size:.2f} GiB of shared memory in {folder}: '
                   'workers of data loaders die there with a bus error: '
                   'docker run --ipc=host or --shm-size=8g, or num_workers=0')
    return row('ok', f'{size:.0f} GiB of shared memory in {folder}')


def config(path: str) -> Iterator[dict]:
    """Whether a config and its datasets can be read."""
    from ..config import check_sync_bn, read_config
    cfg = read_config(path)
    check_sync_bn(cfg)
    yield row('ok', f'{path}: it reads')
    for split in ('train', 'val', 'test'):
        if isinstance(cfg.get(f'{split}_dataloader'), dict):
            yield from attempt(f'{split}_dataloader', _dataset, cfg, split)


def _dataset(cfg, split: str) -> Iterator[dict]:
    from ..config.lookup import forbid_downloads
    from ..launch.entry import build_loader
    downloading = forbid_downloads(cfg, f'{split}_dataloader')
    try:
        dataset: Any = build_loader(cfg, split).dataset
        yield row('ok', f'{len(dataset)} samples')
    except Exception as error:  # a dataset may raise anything
        level, todo = ('warning', 'a training downloads it') if (
            downloading) else ('error', 'name another folder by --data-root')
        yield row(level, f'{one_line(error)}: {todo}')


def operators(_: str) -> Iterator[dict]:
    """Whether mmcv has compiled operators, for a GPU if there is one."""
    if why := operators_missing('cuda' if shutil.which('nvidia-smi') else ''):
        yield row('error', f'{why}; classification does without')


def operators_missing(device: str) -> str:
    """Why mmcv has no compiled operators for a device; '' if it has."""
    todo = 'bash tools/setup_env.sh, on this machine, compiles them'
    try:
        from mmcv.ops import get_compiling_cuda_version
    except Exception as error:
        return f'mmcv has no compiled operators ({one_line(error)}): {todo}'
    cpu_only = get_compiling_cuda_version() == 'not available'
    return f'mmcv was compiled for the CPU only: {todo}' if (
        device == 'cuda' and cpu_only) else ''


def device(kind: str) -> Iterator[dict]:
    """The GPUs and the versions, which go into the file of --json.

    Args:
        kind (str): ``'cuda'``, ``'cpu'``, or ``''``, a GPU if there is one.
    """
    import torch
    from torch.utils.collect_env import get_pretty_env_info

    from ..utils import provenance
    from ..version import __version__
    for name in versions.present():
        yield from versions.load(name)
    if kind != 'cpu':
        yield from _gpus(kind == 'cuda' or bool(shutil.which('nvidia-smi')))
    try:
        found = get_pretty_env_info()
    except Exception as error:  # it calls pip, which may be absent
        found = one_line(error)
    driver = re.search(r'^Nvidia driver version: ([\d.]+)', found, re.M)
    gpu = torch.cuda.is_available()
    facts = dict(
        commit=provenance.revision(), date=provenance.today(),
        versions=dict(provenance.versions(), stepnet_mm=__version__),
        device=torch.cuda.get_device_name() if gpu else 'cpu',
        machine=provenance.machine(), load=os.getloadavg(),
        environment=found.splitlines())
    yield row('ok', f'{facts["device"]}, driver '
              f'{driver[1] if driver else "none"}, CUDA {torch.version.cuda}, '
              f'commit {facts["commit"]}', facts=facts)


def _gpus(needed: bool) -> Iterator[dict]:
    from torch import cuda, distributed, version
    if not cuda.is_available() and needed:
        yield row('error', 'no GPU that torch can use: is it a CPU build, is '
                  'CUDA_VISIBLE_DEVICES empty, or the driver (nvidia-smi) '
                  f'older than CUDA {version.cuda} needs? --device cpu tries '
                  'the CPU')
    elif not cuda.is_available():
        yield row('warning', 'no GPU: training runs on CPU, with gloo')
    for i in range(cuda.device_count()):
        found = cuda.get_device_properties(i)
        arch = f'sm_{found.major}{found.minor}'
        yield row('ok', f'GPU {i}: {found.name}, '
                  f'{found.total_memory / 2**30:.0f} GiB, {arch}')
        if not any(known.startswith(f'sm_{found.major}')
                   for known in cuda.get_arch_list()):
            yield row('error', f'torch was not built for {arch}: install a '
                      'build whose CUDA version knows it')
    if cuda.is_available() and not distributed.is_nccl_available():
        yield row('warning', "no NCCL: set env_cfg.dist_cfg.backend='gloo'")
