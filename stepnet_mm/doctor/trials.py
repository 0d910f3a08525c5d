"""Tries kernels, and trainings of seconds: resumed, and of several ranks."""
import datetime
import os
from collections.abc import Iterator
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import Any

import torch
from mmengine.config import Config
from mmengine.dist import all_gather_object
from mmengine.model import BaseModel
from mmengine.registry import MODELS
from mmengine.runner import Runner
from torch import Tensor, distributed, multiprocessing

from ..ops.tail_kernels import HAS_TRITON, check_kernels
from .process import REPORT_IT, attempt, judge, row

TODO = f'backbone.fused=False does without it; {REPORT_IT}'
#: Of a training, with a checkpoint after each, and the one that is resumed.
ITERATIONS, RESUMED = 4, 3


def kernels(device: str) -> Iterator[dict]:
    """Whether every kernel agrees with the plain formulas."""
    if device == 'cuda' and not HAS_TRITON:
        yield row('warning', 'Triton is not installed, StepNet runs without '
                  'its fused tail: pip install triton makes it faster')
        return
    for dtype in dtypes(device):
        for found in check_kernels(device, [dtype]):
            text = found.reason or (
                f'{found.difference:.2g} of the allowed difference')
            yield judge(found.ok, f'{found.kernel}, {dtype}, '
                        f'{found.memory_format}: {text}', TODO)


class _Tiny(BaseModel):
    """A backbone; the loss is the last map's mean square."""

    def __init__(self, backbone):
        super().__init__()
        self.backbone = MODELS.build(backbone)

    def forward(self, inputs, mode='loss'):
        last = self.backbone(torch.stack(list(inputs)))[-1]
        return dict(loss=last.square().mean())


def _train(work_dir: str, library: str, norm: str = 'BN',
           **settings: Any) -> dict[str, Tensor]:
    """The weights of a library's StepResNet, on the CPU, after a training with
    a checkpoint after each iteration; settings are of the Runner.
    """
    norm_cfg = dict(type=norm)
    images = torch.randn(
        8, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    # The ranks' running averages of BN differ, those of SyncBN do not.
    averages = [dict(type='SyncBuffersHook')] if norm == 'BN' else []
    runner = Runner(**{**dict(
        model=_Tiny(dict(
            type=f'{library}.StepResNet', depth=18, base_channels=8,
            stem_channels=8, norm_cfg=norm_cfg,
            step=dict(type='StepAdaptor', norm_cfg=norm_cfg))),
        work_dir=work_dir,
        train_dataloader=dict(
            dataset=[dict(inputs=image) for image in images],
            batch_size=4, num_workers=0,
            sampler=dict(type='InfiniteSampler', shuffle=True)),
        train_cfg=dict(
            type='ResumableIterBasedTrainLoop', max_iters=ITERATIONS),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=.01, momentum=.9)),
        default_hooks=dict(checkpoint=dict(
            type='AtomicCheckpointHook', interval=1, by_epoch=False)),
        custom_hooks=[dict(type='NonFiniteLossHook'), *averages],
        randomness=dict(seed=0, deterministic=True),
        default_scope='mmengine',
        log_level='ERROR',
        experiment_name=f'stepnet_mm_{work_dir}'), **settings})
    runner.train()
    return {k: v.cpu() for k, v in runner.model.state_dict().items()}


def resume(_: str) -> Iterator[dict]:
    """Whether a resumed training ends as an uninterrupted one, by library."""
    for library in libraries():
        yield from attempt(library, _resume, library)


def _resume(library: str) -> Iterator[dict]:
    with TemporaryDirectory() as folder:
        whole = _train(f'{folder}/whole', library)
        resumed = _train(f'{folder}/resumed', library, resume=True,
                         load_from=f'{folder}/whole/iter_{RESUMED}.pth')
    _require_equal(resumed, whole, 'a training that was not stopped')
    yield row('ok', 'a tiny StepResNet trains, is saved, loaded in iteration '
              f'{RESUMED} and resumed bit for bit (deterministic=True)')


def ddp(device: str) -> Iterator[dict]:
    """Whether all ranks end with the same weights: one rank per GPU, with
    SyncBN, or two on a CPU, with BN.
    """
    ranks = torch.cuda.device_count() or 2
    norm, backend, method = ('SyncBN', 'nccl', 'spawn') if (
        device == 'cuda') else ('BN', 'gloo', 'fork')
    with TemporaryDirectory() as folder:
        multiprocessing.start_processes(
            _train_rank, (ranks, folder, backend, norm), ranks,
            start_method=method)
    yield row('ok', f'{norm}, {ranks} rank{"s" * (ranks > 1)}, {backend}: '
              'the same weights everywhere')


def _train_rank(rank: int, ranks: int, folder: str, backend: str,
                norm: str) -> None:
    os.environ['LOCAL_RANK'] = str(rank)
    if backend == 'nccl':
        torch.cuda.set_device(rank)
    distributed.init_process_group(
        backend, init_method=f'file://{folder}/rendezvous',
        rank=rank, world_size=ranks, timeout=datetime.timedelta(seconds=60))
    wrapper = dict(type='MMDistributedDataParallel', broadcast_buffers=False,
                   device_ids=[rank] if backend == 'nccl' else None)
    weights = _train(
        folder, libraries()[0], norm, launcher='pytorch',
        randomness=dict(seed=0), cfg=Config(dict(model_wrapper_cfg=wrapper)))
    _require_equal(weights, all_gather_object(weights)[0], 'rank 0')
    distributed.destroy_process_group()


def _require_equal(got: dict, expected: dict, of: str) -> None:
    different = [name for name, value in got.items()
                 if not torch.equal(value, expected[name])]
    if different:
        raise RuntimeError(
            f'weights: expected those of {of}, got others, {different[0]} the '
            f'first of {len(different)}')


def libraries() -> list[str]:
    """The installed libraries that have a StepResNet."""
    return [name for name in ('mmpretrain', 'mmdet') if find_spec(name)]


def dtypes(device: str) -> list[torch.dtype]:
    """The dtypes of trainings: float32, then the better one of autocast."""
    if device == 'cpu':
        return [torch.float32, torch.bfloat16]
    new = torch.cuda.get_device_capability() >= (8, 0)
    return [torch.float32, *[torch.bfloat16] * new, torch.float16]
