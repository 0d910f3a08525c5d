"""What toy_config.py builds; everything in it draws at random."""
import os
import random
import time

import numpy as np
import torch
from mmengine.hooks import Hook
from mmengine.model import BaseModel
from mmengine.registry import DATASETS, HOOKS, MODELS
from torch import nn
from torch.utils.data import Dataset

from stepnet_mm.steps import StepAdaptor


@DATASETS.register_module()
class NoisyImages(Dataset):
    """100 images of noise, and a draw from each generator on top."""

    def __len__(self):
        return 100

    def __getitem__(self, i):
        own = torch.Generator().manual_seed(i)
        noise = random.random() + np.random.rand() + torch.rand(3, 1, 1)
        return dict(inputs=torch.randn(3, 32, 32, generator=own) + noise)


class StepBlock(nn.Module):
    """A basic block with an adaptor, as those of StepResNet."""
    downsample = None

    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.step = StepAdaptor(channels)

    def forward(self, x):
        f = self.norm2(self.conv2(self.norm1(self.conv1(x)).relu()))
        return (x + self.step(x, f)).relu()


@MODELS.register_module()
class SmallStepNet(nn.Module):
    """Two stages of three blocks, without the seconds that mmpretrain takes.

    A rank of a job that is killed again and again mostly starts.
    """

    def __init__(self):
        super().__init__()
        stages = [self._stage(3, 8), self._stage(8, 16)]
        self.stages = nn.ModuleList(stages)

    @staticmethod
    def _stage(inputs, channels):
        return nn.Sequential(
            nn.Conv2d(inputs, channels, 3, stride=2, padding=1),
            *[StepBlock(channels) for _ in range(3)])

    def forward(self, x):
        for stage in self.stages:
            x = stage(x)
        return (x, )


@MODELS.register_module()
class DroppedOut(BaseModel):
    """A backbone and dropout; the weights beside make saves take a while.

    Args:
        backbone (dict): its config.
        ballast (int): MiB of weights that nothing uses.
    """

    def __init__(self, backbone, ballast=0):
        super().__init__()
        self.backbone = MODELS.build(backbone)
        self.dropout = nn.Dropout(.3)
        self.register_buffer('ballast', torch.zeros(ballast, 2**18))

    def forward(self, inputs, mode='loss'):
        last = self.dropout(self.backbone(torch.stack(list(inputs)))[-1])
        return dict(loss=(last.mean((2, 3)) - 1).square().mean())


@HOOKS.register_module()
class SlowHook(Hook):
    """Gives those who want to stop the training time to do so.

    Args:
        seconds (float): after each iteration.
        first (bool): not after a requeue.
    """

    def __init__(self, seconds, first=False):
        requeued = int(os.environ.get('SLURM_RESTART_COUNT', 0)) > 0
        self.seconds = 0 if first and requeued else seconds

    def after_train_iter(self, runner, *args, **kwargs):
        time.sleep(self.seconds)


@HOOKS.register_module()
class FailingHook(Hook):
    """An error on one rank."""

    def __init__(self, rank, at):
        self.rank, self.at = rank, at

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        if runner.rank == self.rank and runner.iter == self.at:
            raise RuntimeError('the disk of this rank is gone')
