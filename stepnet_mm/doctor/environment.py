"""Checks versions, GPUs, operators, disk, a config and its datasets."""
import importlib
import os
import platform
import re
import shutil
from argparse import ArgumentTypeError
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..supported import MIN_VERSIONS, differences
from ..utils import provenance
from ..utils.command_line import existing_folder
from ..version import __version__
from .process import attempt, judge, one_line, row

#: A library and the one that may be there in its place.
INSTEAD = dict(mmdet='mmpretrain', mmpretrain='mmdet')


def versions() -> Iterator[dict]:
    """Whether the libraries are there, recent enough, and go together."""
    python, found = platform.python_version(), {}
    names = provenance.distributions(provenance.LIBRARIES)
    for name, installed in names.items():
        if not installed:
            enough = names.get(INSTEAD.get(name, ''))
            yield row('warning' if enough else 'error',
                      f'{name} is not installed: bash tools/setup_env.sh; '
                      'of mmdet and mmpretrain one is enough')
            continue
        found[name] = metadata.version(installed[0]) or 'unknown'
        if len(installed) > 1:
            yield row('error', f'{name} is installed from '
                      f'{" and ".join(installed)}: pip uninstall '
                      f'{" ".join(installed)}, then install one of them')
        if numbers(found[name]) < numbers(MIN_VERSIONS.get(name, '0')):
            yield row('error', f'{name} {found[name]}: install >= '
                      f'{MIN_VERSIONS[name]}')
    yield row('ok', ', '.join([f'Python {python}', *(
        f'{names[name][0]} {version}' for name, version in found.items())]))
    stack, other = min(differences(python, found).items(),
                       key=lambda item: len(item[1]))
    if other:
        yield row('warning', 'not an environment that was tried; nearest is '
                  f'STACK={stack}, but for {", ".join(other)}: nothing to '
                  'do, if a StepResNet trains here (below)')


def numbers(version: str) -> tuple[int, ...]:
    """'2.11.0+cu130' -> (2, 11, 0)."""
    return tuple(map(int, re.findall(r'\d+', version.partition('+')[0])[:3]))


def device(kind: str) -> Iterator[dict]:
    """Whether the libraries import, and there is a GPU of ``'cuda'``; with
    ``''`` a warning says that there is none.
    """
    for name in filter(find_spec, MIN_VERSIONS):
        yield from attempt(f'import {name}', _load, name)
    import torch
    from torch.utils.collect_env import get_pretty_env_info
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not gpus and (
            kind == 'cuda' or not kind and shutil.which('nvidia-smi')):
        yield row('error', 'no GPU that torch can use: is it a CPU build, '
                  'CUDA_VISIBLE_DEVICES empty, or the driver too old for CUDA '
                  f'{torch.version.cuda}? --device cpu tries the CPU')
    elif not gpus and not kind:
        yield row('warning', 'no GPU: training runs on CPU, with gloo')
    try:
        environment = get_pretty_env_info().splitlines()
    except Exception as error:  # it calls pip, which may be absent
        environment = [one_line(error)]
    names = ', '.join(map(torch.cuda.get_device_name, range(gpus)))
    commit = provenance.revision()
    yield row('ok', f'{names or "no GPU"}, CUDA {torch.version.cuda}, commit '
              f'{commit}', commit=commit, date=provenance.today(),
              load=os.getloadavg(), environment=environment,
              versions=dict(provenance.versions(), stepnet_mm=__version__))


def _load(name: str) -> tuple:
    importlib.import_module(name)
    return ()


def mmcv_operators(kind: str) -> Iterator[dict]:
    """Whether compiled operators of mmcv run, as detectors need them."""
    import torch
    kind = kind or ('cuda' if torch.cuda.is_available() else 'cpu')
    boxes = torch.tensor([[0., 0., 9., 9.]], device=kind)
    try:
        from mmcv.ops import nms
        nms(boxes, boxes[:, 3], .5)
        yield row('ok', f'mmcv has compiled operators for {kind}')
    except Exception as error:  # of its import, or for the CPU alone
        yield row('error' if find_spec('mmdet') else 'skipped',
                  f'mmcv has no compiled operators for {kind} '
                  f'({one_line(error)}): bash tools/setup_env.sh compiles '
                  'them, on a node with the GPU or with FORCE_CUDA=1; '
                  'classification does without')


def machine(work_dir: str) -> Iterator[dict]:
    """Whether there is room for checkpoints and batches."""
    try:
        yield _room(existing_folder(Path(work_dir).absolute()), 5,
                    'a checkpoint of a detector takes about 0.4 GiB, and one '
                    'more than max_keep_ckpts must fit')
    except ArgumentTypeError as error:
        yield row('error', f'--work-dir: {error}')
    if os.path.isdir('/dev/shm'):
        yield _room('/dev/shm', 1, 'workers of data loaders die there with a '
                    'bus error: docker run --ipc=host or --shm-size=8g, or '
                    'num_workers=0')


def _room(folder: Path | str, least: float, todo: str) -> dict:
    free = shutil.disk_usage(folder).free / 2**30
    return judge(free >= least, f'{free:.2f} GiB free in {folder}', todo,
                 'warning')


def config(path: str) -> Iterator[dict]:
    """Whether a config and its datasets can be read."""
    from ..config import read_config
    from ..config.options import forbid_downloads
    from ..launch.entry import build_loader, check_model
    try:
        cfg = read_config(path)
        if 'runner_type' not in cfg:
            check_model(cfg)
    except ValueError as error:
        yield row('error', one_line(error))
        return
    yield row('ok', f'{path}: it reads')
    for split in ('train', 'val', 'test'):
        key = f'{split}_dataloader'
        if not isinstance(cfg.get(key), dict):
            continue
        level, todo = 'error', 'name another folder by --data-root'
        if forbid_downloads(cfg, key):
            level, todo = 'warning', 'a training downloads it'
        try:
            dataset: Any = build_loader(cfg, split).dataset
            yield row('ok', f'{key}: {len(dataset)} samples')
        except Exception as error:  # a dataset may raise anything
            yield row(level, f'{key}: {one_line(error)}: {todo}')
