"""Trainings of seconds: of a detector, stopped and resumed, by ranks."""
import datetime
import os
from collections.abc import Iterator
from tempfile import TemporaryDirectory
from typing import Any

import torch
from mmengine.config import Config
from mmengine.model import BaseModel
from mmengine.registry import MODELS
from mmengine.runner import Runner
from torch import Tensor, distributed, multiprocessing

from ..config import read_config, set_data_root
from ..config_path import config_path
from ..datasets.mini_coco import make_mini_coco
from ..launch.entry import build_runner
from .machine import operators_missing
from .numerics import libraries, make_images
from .report import Unavailable, attempt, row

#: Of a training, with a checkpoint after each, and the one that is stopped.
ITERATIONS, STOPPED_IN = 4, 3
FINITE = dict(type='NonFiniteLossHook')  # raises where the loss is not
DETECTOR = 'faster_rcnn_r34_stepnet_mini_coco.py'


class _Tiny(BaseModel):
    """A backbone; the loss is the last map's mean square."""

    def __init__(self, backbone):
        super().__init__()
        self.backbone = MODELS.build(backbone)

    def forward(self, inputs, mode='loss'):
        last = self.backbone(torch.stack(list(inputs)))[-1]
        return dict(loss=last.square().mean())


def train_tiny(work_dir: str, *hooks: dict, name: str = '',
               max_iters: int = ITERATIONS, norm: str = 'BN',
               **settings: Any) -> dict[str, Tensor]:
    """Train a small StepNet; return its weights, on the CPU.

    Args:
        work_dir (str): for a checkpoint after each iteration.
        *hooks: further hooks.
        name (str): the library; defaults to one that is installed.
        max_iters (int): iterations in all.
        norm (str): type of its norms.
        **settings: arguments of the Runner.

    Raises:
        FloatingPointError: if a loss is not finite.
    """
    defaults: dict = dict(
        model=_Tiny(dict(
            type=f'{name or libraries()[0]}.StepResNet', depth=18,
            base_channels=8, stem_channels=8, norm_cfg=dict(type=norm))),
        work_dir=work_dir,
        train_dataloader=dict(
            dataset=[dict(inputs=image)
                     for image in make_images('cpu', 8, 32)],
            batch_size=4, num_workers=0,
            sampler=dict(type='InfiniteSampler', shuffle=True)),
        train_cfg=dict(
            type='ResumableIterBasedTrainLoop', max_iters=max_iters),
        optim_wrapper=dict(
            optimizer=dict(type='SGD', lr=.01, momentum=.9)),
        default_hooks=dict(checkpoint=dict(
            type='AtomicCheckpointHook', interval=1, by_epoch=False)),
        custom_hooks=[FINITE, *hooks],
        randomness=dict(seed=0, deterministic=True),
        default_scope='mmengine',
        log_level='ERROR',
        experiment_name=f'stepnet_mm_{work_dir}_{name}')
    runner = Runner(**{**defaults, **settings})
    runner.train()
    return {k: v.cpu() for k, v in runner.model.state_dict().items()}


def detector(device: str) -> Iterator[dict]:
    """Whether Faster R-CNN on drawn images has a finite loss."""
    if 'mmdet' not in libraries():
        raise Unavailable('mmdet is not installed: classification does '
                          'without')
    if why := operators_missing(device):
        raise Unavailable(why)
    with TemporaryDirectory() as folder:
        make_mini_coco(folder, train=8, val=3)
        cfg = read_config(config_path(DETECTOR), f'{folder}/work_dir')
        set_data_root(cfg, folder)
        cfg.custom_hooks = [FINITE]
        cfg.train_cfg.update(max_iters=ITERATIONS, val_interval=99)
        cfg.train_dataloader.update(num_workers=0, persistent_workers=False)
        build_runner(cfg).train()
    yield row('ok', f'Faster R-CNN: {ITERATIONS} iterations')


def resume(_: str) -> Iterator[dict]:
    """Whether a stopped training of each library ends with the weights of an
    uninterrupted one.
    """
    for name in libraries():
        yield from attempt(name, _resume, name)


def _resume(name: str) -> Iterator[dict]:
    with TemporaryDirectory() as folder:
        train_tiny(f'{folder}/stopped', name=name, max_iters=STOPPED_IN)
        _require_equal(
            train_tiny(f'{folder}/stopped', name=name, resume=True),
            train_tiny(f'{folder}/whole', name=name),
            'a training that was not stopped')
    yield row('ok', 'a tiny StepResNet trains, is saved, stopped in iteration '
              f'{STOPPED_IN}, loaded and resumed bit for bit '
              '(deterministic=True)')


def ddp(device: str) -> Iterator[dict]:
    """Whether all ranks end with the same weights, with BN and, on GPUs, with
    SyncBN: one rank per GPU, or two on a CPU.
    """
    backend = 'nccl' if device == 'cuda' else 'gloo'
    if not distributed.is_backend_available(backend):
        raise Unavailable(f'torch has no {backend}')
    ranks = torch.cuda.device_count() or 2
    with TemporaryDirectory() as folder:
        try:
            multiprocessing.start_processes(
                _train_rank, (ranks, folder, backend), ranks,
                start_method='spawn')
        except multiprocessing.ProcessRaisedException as error:
            last = f'{error}'.strip().splitlines()[-1]
            raise RuntimeError(last) from error
        first, *others = (
            torch.load(f'{folder}/{rank}.pth') for rank in range(ranks))
    for norm, weights in first.items():
        for rank, found in enumerate(others, 1):
            _require_equal(found[norm], weights, f'rank 0 in rank {rank}')
        yield row('ok', f'{norm}, {ranks} rank{"s" * (ranks > 1)}, '
                  f'{backend}: the same weights everywhere')


def _train_rank(rank: int, ranks: int, folder: str, backend: str) -> None:
    gpu = backend == 'nccl'
    os.environ['LOCAL_RANK'] = str(rank)
    if gpu:
        torch.cuda.set_device(rank)
    distributed.init_process_group(
        backend, init_method=f'file://{folder}/rendezvous',
        rank=rank, world_size=ranks, timeout=datetime.timedelta(seconds=60))
    wrapper = dict(type='MMDistributedDataParallel', broadcast_buffers=False,
                   device_ids=[rank] if gpu else None)
    # The ranks' running averages of BN differ, those of SyncBN do not.
    hooks = dict(BN=[dict(type='SyncBuffersHook')], SyncBN=[])
    torch.save({norm: train_tiny(
        f'{folder}/{norm}', *hooks[norm], norm=norm, launcher='pytorch',
        randomness=dict(seed=0), cfg=Config(dict(model_wrapper_cfg=wrapper)))
        for norm in [*hooks][:1 + gpu]}, f'{folder}/{rank}.pth')
    distributed.destroy_process_group()


def _require_equal(got: dict, expected: dict, of: str) -> None:
    different = [name for name, value in got.items()
                 if not torch.equal(value, expected[name])]
    if different:
        raise RuntimeError(
            f'weights: expected those of {of}, got others, {different[0]} the '
            f'first of {len(different)}')
