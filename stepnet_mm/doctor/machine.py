"""Checks the machine: GPUs, Slurm, disk, and what a training starts from."""
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from .rows import attempt, one_line, row


def check(work_dir: str, data_root: str) -> Iterator[dict]:
    """Slurm, room for checkpoints and batches, weights and datasets."""
    yield slurm()
    yield disk(Path(work_dir).absolute())
    if os.path.isdir('/dev/shm'):
        yield shared_memory('/dev/shm')
    cache = os.environ.get('XDG_CACHE_HOME', '~/.cache')
    home = os.environ.get('TORCH_HOME') or f'{cache}/torch'
    yield content(
        'weights', f'{home}/hub/checkpoints', 'init_cfg with torchvision:// '
        'or http:// will download; on a node without network put the file '
        'there, or start from random weights by --cfg-options '
        'model.backbone.init_cfg=None model.backbone.frozen_stages=-1')
    yield content('datasets', data_root, 'the configs read them there; '
                  '--data-root of the tools names another folder')


def slurm() -> dict:
    """Whether Slurm, where there is one, answers."""
    if shutil.which('srun') is None:
        return row('ok', 'no Slurm here: tools/dist_train.sh is for one '
                   'machine')
    try:
        lines = subprocess.run(
            ['sinfo', '--noheader', '--format=%R %t %D'], text=True,
            capture_output=True, timeout=20, check=True).stdout.splitlines()
    except (OSError, subprocess.SubprocessError) as error:
        why, *_ = (getattr(error, 'stderr', '') or f'{error}').splitlines()
        return row('warning', f'srun is there, but sinfo fails ({why}): is '
                   'the Slurm controller up, is SLURM_CONF right?')
    return row('ok', 'Slurm, partitions with state and nodes: '
               + '; '.join(lines))


def disk(folder: Path) -> dict:
    """Whether checkpoints can be written to a folder, which may not exist."""
    there = next(f for f in (folder, *folder.parents) if f.is_dir())
    free = shutil.disk_usage(there).free / 2**30
    if not os.access(there, os.W_OK):
        return row('error', f'{there} cannot be written: choose another '
                   '--work-dir')
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


def content(what: str, folder: str, todo: str) -> dict:
    """What is in a folder of weights or datasets."""
    there = Path(folder).expanduser()
    names = sorted(os.listdir(there)) if there.is_dir() else []
    if not names:
        return row('warning', f'no {what} in {there}: {todo}')
    shown = ', '.join(names[:9]) + ', ...' * (len(names) > 9)
    return row('ok', f'{what} in {there}: {shown}')


def config(path: str) -> Iterator[dict]:
    """Whether a config reads, and its datasets."""
    from ..config import check_sync_bn, read_config
    cfg = read_config(path)
    check_sync_bn(cfg)
    yield row('ok', f'{path}: it reads')
    for split in ('train', 'val', 'test'):
        if isinstance(cfg.get(f'{split}_dataloader'), dict):
            yield from attempt(f'{split}_dataloader', _dataset, cfg, split)


def _dataset(cfg, split: str) -> Iterator[dict]:
    from ..config.parts import forbid_downloads
    from ..launch.entry import build_loader
    downloading = forbid_downloads(cfg, f'{split}_dataloader')
    try:
        dataset = build_loader(cfg, split).dataset
        yield row('ok', f'{len(dataset)} samples')  # type: ignore[arg-type]
    except Exception as error:  # a dataset may raise anything
        yield row('warning' if downloading else 'error',
                  f'{one_line(error)}: ' + (
                      'a training downloads it' if downloading else
                      '--data-root of the tools names another folder'))


def operators(_: str) -> Iterator[dict]:
    """Whether mmcv's are there, for a GPU if there is one."""
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
    """What torch sees; it goes into the file of --json.

    Args:
        kind (str): ``'cuda'``, ``'cpu'``, or ``''``, a GPU if there is one.
    """
    import torch
    from torch.utils.collect_env import get_pretty_env_info

    from ..utils.circumstances import circumstances
    from ..version import __version__
    if kind != 'cpu':
        yield from _gpus(kind == 'cuda' or bool(shutil.which('nvidia-smi')))
    try:
        found = get_pretty_env_info()
    except Exception as error:  # it asks pip, which may not be there
        found = one_line(error)
    driver = re.search(r'^Nvidia driver version: ([\d.]+)', found, re.M)
    facts = circumstances()
    facts['versions'].update(stepnet_mm=__version__)
    facts.update(load=os.getloadavg(), environment=found.splitlines())
    yield row('ok', f'{facts["device"]}, driver '
              f'{driver[1] if driver else "none"}, CUDA {torch.version.cuda}, '
              f'commit {facts["commit"]}', facts=facts)


def _gpus(needed: bool) -> Iterator[dict]:
    import torch
    if not torch.cuda.is_available():
        yield row('error', f'no GPU that torch {torch.__version__} can use: '
                  'is it a CPU build, is CUDA_VISIBLE_DEVICES empty, or the '
                  f'driver (nvidia-smi) older than CUDA {torch.version.cuda} '
                  'needs? --device cpu tries the CPU') if needed else row(
                      'warning', 'no GPU: training runs on CPU, with gloo')
        return
    for i in range(torch.cuda.device_count()):
        found = torch.cuda.get_device_properties(i)
        arch = f'sm_{found.major}{found.minor}'
        yield row('ok', f'GPU {i}: {found.name}, '
                  f'{found.total_memory / 2**30:.0f} GiB, {arch}')
        if not any(known.startswith(f'sm_{found.major}')
                   for known in torch.cuda.get_arch_list()):
            yield row('error', f'torch was not built for {arch}: install a '
                      'build whose CUDA version knows it')
    if not torch.distributed.is_nccl_available():
        yield row('warning', 'no NCCL: set '
                  "env_cfg.dist_cfg.backend='gloo'")
