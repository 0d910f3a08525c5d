"""A training of seconds, by which the doctor sees whether one can."""
import math
import os

import torch
from mmengine.model import BaseModel
from mmengine.registry import MODELS
from mmengine.runner import Runner
from torch import Tensor
from torch.utils.data import Dataset

from ..safe_loading.loaders import load_from_local


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


def try_training(library: str, folder: str) -> None:
    """Train a small StepNet, save, load and resume it, on the CPU.

    Args:
        library (str): whose StepResNet, ``'mmdet'`` or ``'mmpretrain'``.
        folder (str): an empty one, to save into.

    Raises:
        RuntimeError: if the loss is not finite, or the resumed training ends
            otherwise than one that was not stopped; and whatever the
            libraries raise.
    """
    whole = os.path.join(folder, 'whole')
    train_tiny(library, whole)
    ends = load_from_local(os.path.join(whole, 'iter_2.pth'))['state_dict']
    resumed = train_tiny(
        library, os.path.join(folder, 'resumed'), resume=True,
        load_from=os.path.join(whole, 'iter_1.pth'))
    require_equal(resumed.state_dict(), ends, 'resume',
                  'a training that was not stopped')


def require_equal(got: dict[str, Tensor], expected: dict[str, Tensor],
                  key: str, of: str) -> None:
    """Compare weights bit for bit, on whatever device they are.

    Raises:
        RuntimeError: if they differ; ``key`` and ``of`` say whose they are.
    """
    different = [name for name, value in got.items()
                 if not torch.equal(value.cpu(), expected[name].cpu())]
    if different:
        raise RuntimeError(
            f'{key}: expected the weights of {of}, got others, '
            f'{different[0]} the first of {len(different)}')


def train_tiny(library: str, work_dir: str, max_iters: int = 2,
               **settings) -> BaseModel:
    """Train a small StepNet; return it.

    Args:
        library (str): whose StepResNet.
        work_dir (str): for its checkpoints, one after each iteration.
        max_iters (int): iterations in all.
        **settings: others of the Runner, which take the place of those here.

    Raises:
        RuntimeError: if the last loss is not finite.
    """
    backbone = dict(type=f'{library}.StepResNet', depth=18, base_channels=8,
                    stem_channels=8)
    defaults: dict = dict(
        model=_Tiny(backbone),
        work_dir=work_dir,
        train_dataloader=dict(
            dataset=_Noise(), batch_size=4, num_workers=0,
            sampler=dict(type='InfiniteSampler', shuffle=True)),
        train_cfg=dict(
            type='ResumableIterBasedTrainLoop', max_iters=max_iters),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=.01, momentum=.9)),
        default_hooks=dict(checkpoint=dict(
            type='AtomicCheckpointHook', interval=1, by_epoch=False)),
        randomness=dict(seed=0),
        default_scope='mmengine',
        log_level='ERROR',
        experiment_name=f'stepnet_mm_{os.path.basename(work_dir)}_{library}')
    runner = Runner(**{**defaults, **settings})
    runner.train()
    loss = runner.message_hub.get_scalar('train/loss').current()
    if not math.isfinite(loss):
        raise RuntimeError(f'loss: expected a finite one, got {loss}')
    return runner.model
