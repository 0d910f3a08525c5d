"""Trainings of seconds: in half precision, by ranks, killed, measured."""
import datetime
import math
import os
import signal
from collections.abc import Iterator
from tempfile import TemporaryDirectory
from typing import Any

import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.model import BaseModel
from mmengine.registry import MODELS
from mmengine.runner import Runner
from torch import Tensor, distributed, multiprocessing
from torch.utils.data import Dataset

from ..config import read_config, set_data_root
from ..config_path import config_path
from ..datasets.mini_coco import make_mini_coco
from ..launch.entry import build_runner
from .machine import operators_missing
from .numerics import libraries, precision, short
from .rows import Unavailable, attempt, row

#: Of a training in all, each with a checkpoint behind it, and that of a kill.
ITERATIONS, KILLED_IN = 4, 3
SGD = dict(type='SGD', lr=.01, momentum=.9)
DETECTOR = 'faster_rcnn_r34_stepnet_mini_coco.py'


class _Noise(Dataset):
    """Eight images."""

    def __len__(self):
        return 8

    def __getitem__(self, i):
        generator = torch.Generator().manual_seed(i)
        return dict(inputs=torch.randn(3, 32, 32, generator=generator))


class _Tiny(BaseModel):
    """A backbone whose last map is drawn to 0."""

    def __init__(self, backbone):
        super().__init__()
        self.backbone = MODELS.build(backbone)

    def forward(self, inputs, mode='loss'):
        last = self.backbone(torch.stack(list(inputs)))[-1]
        return dict(loss=last.square().mean())


class _Kill(Hook):
    """Kills its own process."""

    def after_train_iter(self, runner, *_, **__) -> None:
        """Count, and end."""
        if runner.iter + 1 == KILLED_IN:
            os.kill(os.getpid(), signal.SIGKILL)


def train_tiny(name: str, work_dir: str, max_iters: int = ITERATIONS,
               norm: str = 'BN', **settings: Any) -> dict[str, Tensor]:
    """Train a small StepNet of a library; return its weights, on the CPU.

    Args:
        name (str): whose StepResNet, ``'mmdet'`` or ``'mmpretrain'``.
        work_dir (str): for its checkpoints, one after each iteration.
        max_iters (int): iterations in all.
        norm (str): type of its norms.
        **settings: others of the Runner, which take the place of those here.

    Raises:
        RuntimeError: if the last loss is not finite.
    """
    defaults: dict = dict(
        model=_Tiny(dict(type=f'{name}.StepResNet', depth=18,
                         base_channels=8, stem_channels=8,
                         norm_cfg=dict(type=norm))),
        work_dir=work_dir,
        train_dataloader=dict(
            dataset=_Noise(), batch_size=4, num_workers=0,
            sampler=dict(type='InfiniteSampler', shuffle=True)),
        train_cfg=dict(
            type='ResumableIterBasedTrainLoop', max_iters=max_iters),
        optim_wrapper=dict(optimizer=SGD),
        default_hooks=dict(checkpoint=dict(
            type='AtomicCheckpointHook', interval=1, by_epoch=False)),
        randomness=dict(seed=0, deterministic=True),
        default_scope='mmengine',
        log_level='ERROR',
        experiment_name=f'stepnet_mm_{os.path.basename(work_dir)}_{name}')
    runner = Runner(**{**defaults, **settings})
    runner.train()
    _finite_loss(runner)
    return {k: v.cpu() for k, v in runner.model.state_dict().items()}


def _finite_loss(runner: Runner) -> float:
    loss = float(runner.message_hub.get_scalar('train/loss').current())
    if not math.isfinite(loss):
        raise RuntimeError(f'loss: expected a finite one, got {loss}')
    return loss


def _require_equal(got: dict, expected: dict, of: str) -> None:
    """Compare weights bit for bit."""
    different = [name for name, value in got.items()
                 if not torch.equal(value, expected[name])]
    if different:
        raise RuntimeError(
            f'weights: expected those of {of}, got others, {different[0]} the '
            f'first of {len(different)}')


def resume(device: str) -> Iterator[dict]:
    """Whether a training that is killed ends as one that is not; where no
    device is named, whether one of each library that is stopped does.
    """
    for name in libraries()[:1] if device else libraries():
        yield from attempt(name, _resume, name, device)


def _resume(name: str, device: str) -> Iterator[dict]:
    with TemporaryDirectory() as folder:
        stopped = f'{folder}/stopped'
        if device:
            _train_and_die(name, stopped, device)
        else:
            train_tiny(name, stopped, KILLED_IN)
        _require_equal(train_tiny(name, stopped, resume=True),
                       train_tiny(name, f'{folder}/whole'),
                       'a training that was not stopped')
    yield row('ok', 'a tiny StepResNet trains, is saved, '
              f'{"killed" if device else "stopped"} in iteration {KILLED_IN}, '
              'loaded and resumed bit for bit (deterministic=True)')


def _train_and_die(name: str, folder: str, device: str) -> None:
    context: Any = multiprocessing.get_context(_start_method(device))
    process = context.Process(target=train_tiny, args=(name, folder),
                              kwargs=dict(custom_hooks=[_Kill()]))
    process.start()
    process.join()
    if process.exitcode != -signal.SIGKILL:
        raise RuntimeError('the training to be killed: expected it to get to '
                           f'iteration {KILLED_IN}, got exit code '
                           f'{process.exitcode} before')


def _start_method(device: str) -> str:
    """A fork is quick, before torch has computed; CUDA does not take one."""
    return 'fork' if device == 'cpu' else 'spawn'


def tns_hook(device: str) -> Iterator[dict]:
    """Whether TNSHook changes no bit of a training."""
    hook = dict(type='TNSHook', interval=2, figure_interval=0)
    name = libraries()[0]
    with TemporaryDirectory() as folder:
        _require_equal(
            train_tiny(name, f'{folder}/measured', custom_hooks=[hook]),
            train_tiny(name, f'{folder}/without'), 'a training without it')
    yield row('ok', 'on and off give the same weights')


def amp(device: str) -> Iterator[dict]:
    """Whether a few iterations with AmpOptimWrapper end in a finite loss."""
    if device == 'cpu':
        raise Unavailable('AmpOptimWrapper of mmengine needs a GPU')
    for dtype in (torch.float16, torch.bfloat16):
        yield from attempt(short(dtype), _train_in, device, dtype)


def _train_in(device: str, dtype: torch.dtype) -> Iterator[dict]:
    precision(device, dtype)  # or there is nothing to try
    with TemporaryDirectory() as folder:
        train_tiny(libraries()[0], folder, optim_wrapper=dict(
            type='AmpOptimWrapper', dtype=short(dtype), optimizer=SGD))
    yield row('ok', f'{ITERATIONS} iterations with AmpOptimWrapper')


def ddp(device: str) -> Iterator[dict]:
    """Whether all ranks end with the same weights, with BN and with SyncBN:
    one on each GPU, or two on a CPU.
    """
    cpu = device == 'cpu'
    if not cpu and not distributed.is_nccl_available():
        raise Unavailable("torch has no NCCL: set env_cfg.dist_cfg.backend="
                          "'gloo' for trainings")
    ranks = 2 if cpu else torch.cuda.device_count()
    backend = 'gloo' if cpu else 'nccl'
    for norm in ('BN', 'SyncBN'):
        yield from attempt(
            f'{norm}, {ranks} rank{"s" * (ranks > 1)}, {backend}',
            _start_ranks, ranks, device, backend, norm)


def _start_ranks(ranks: int, device: str, *settings: str) -> Iterator[dict]:
    if device == 'cpu' and 'SyncBN' in settings:
        raise Unavailable('torch has it for GPUs only')
    with TemporaryDirectory() as folder:
        try:
            multiprocessing.start_processes(
                _train_rank, (ranks, folder, device, *settings), ranks,
                start_method=_start_method(device))
        except multiprocessing.ProcessRaisedException as error:
            raise RuntimeError(f'{error}'.strip().splitlines()[-1]) from error
        first, *others = (
            torch.load(f'{folder}/{rank}.pth') for rank in range(ranks))
    for rank, weights in enumerate(others, 1):
        _require_equal(weights, first, f'rank 0 in rank {rank}')
    yield row('ok', 'the same weights everywhere')


def _train_rank(rank: int, ranks: int, folder: str, device: str, backend: str,
                norm: str) -> None:
    os.environ['LOCAL_RANK'] = str(rank)
    if device == 'cuda':
        torch.cuda.set_device(rank)
    distributed.init_process_group(
        backend, init_method=f'file://{folder}/rendezvous', rank=rank,
        world_size=ranks, timeout=datetime.timedelta(seconds=60))
    wrapper = dict(type='MMDistributedDataParallel', broadcast_buffers=False,
                   device_ids=[rank] if device == 'cuda' else None)
    # Averages are SyncBN's own task; those of BN differ.
    hooks = [dict(type='SyncBuffersHook')] * (norm == 'BN')
    torch.save(train_tiny(
        libraries()[0], f'{folder}/work_dir', norm=norm, custom_hooks=hooks,
        launcher='pytorch', randomness=dict(seed=0),
        cfg=Config(dict(model_wrapper_cfg=wrapper))), f'{folder}/{rank}.pth')
    distributed.destroy_process_group()


def detector(device: str) -> Iterator[dict]:
    """Whether Faster R-CNN on drawn images ends in a finite loss."""
    if 'mmdet' not in libraries():
        raise Unavailable('mmdet is not installed: classification does '
                          'without')
    if why := operators_missing(device):
        raise Unavailable(why)
    with TemporaryDirectory() as folder:
        make_mini_coco(folder, train=8, val=3)
        cfg = read_config(config_path(DETECTOR), f'{folder}/work_dir')
        set_data_root(cfg, folder)
        cfg.train_cfg.update(max_iters=ITERATIONS, val_interval=99)
        cfg.train_dataloader.update(num_workers=0, persistent_workers=False)
        runner = build_runner(cfg)
        runner.train()
    yield row('ok', f'Faster R-CNN: {ITERATIONS} iterations, loss '
              f'{_finite_loss(runner):.2f}')
