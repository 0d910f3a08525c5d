"""A tiny training in which everything draws at random, for resume tests."""
import os
import random

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.evaluator import BaseMetric
from mmengine.hooks import EMAHook, Hook
from mmengine.model import BaseModel
from mmengine.registry import DATASETS, HOOKS, METRICS, MODELS
from mmengine.structures import BaseDataElement
from ranks import results_of_ranks
from torch import nn
from torch.utils.data import Dataset
from toy_run import toy_runner

#: Samples of the dataset; 11 batches of 3, the last one with 2.
SIZE = 32


@DATASETS.register_module()
class AugmentedDataset(Dataset):
    """Numbers with noise from each of the three generators."""

    def __init__(self, size=SIZE):
        self.size, self.loaded = size, []

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        self.loaded.append(i)
        noise = random.random() + np.random.rand() + torch.rand(1).item()
        return dict(inputs=torch.full((4, ), i / self.size) + noise)


@MODELS.register_module()
class DropoutModel(BaseModel):
    """BatchNorm, dropout, and a draw from numpy, as Mixup makes one."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(.5),
            nn.Linear(8, 1))

    def forward(self, inputs, data_samples=None, mode='loss'):
        x = torch.stack(list(inputs))
        if mode == 'predict':
            return [BaseDataElement(score=s) for s in self.layers(x)]
        if len(x) == 1:  # BatchNorm needs two
            x = x.repeat(2, 1)
        mix = np.random.beta(1, 1)
        return dict(loss=(self.layers(mix * x + (1 - mix) * x.flip(0))
                          - x.sum(1, keepdim=True)).square().mean())


@METRICS.register_module()
class RandomMetric(BaseMetric):
    """The mean score; draws too, and would shift the training's draws."""

    def process(self, data_batch, data_samples):
        torch.rand(3), np.random.rand(), random.random()
        self.results += [s['score'].item() for s in data_samples]

    def compute_metrics(self, results):
        return dict(loss=sum(results) / len(results))


@METRICS.register_module()
class FallingMetric(RandomMetric):
    """A loss that is lower each time, and an accuracy that is higher."""

    def compute_metrics(self, results):
        self.times = getattr(self, 'times', 0) + 1
        return dict(loss=1 / self.times, acc=self.times)


class Stopped(Exception):
    """A kill."""


@HOOKS.register_module()
class StopHook(Hook):
    """Ends the process' training at some place."""
    priority = 'LOWEST'

    def __init__(self, where='after_train_iter', at=7):
        self.at, self.count = at, 0
        setattr(self, where, self._count)

    def _count(self, runner, *args, **kwargs):
        self.count += 1
        if self.count == self.at:
            self.act(runner)

    def act(self, runner):
        raise Stopped


#: The validation of :func:`resume_runner`.
VALIDATION = dict(
    val_dataloader=dict(
        dataset=dict(type='AugmentedDataset', size=6), batch_size=2,
        sampler=dict(type='DefaultSampler', shuffle=False)),
    val_evaluator=dict(type='RandomMetric'))


def resume_runner(work_dir, by_epoch=True, workers=0, interval=1, hooks=(),
                  checkpoint=None, sampler=None, ema=None, loader=None, on=(),
                  **kwargs):
    """Three epochs, or 33 iterations, with validations in between.

    ``on`` has methods of a hook that comes last, by their names.
    """
    if by_epoch:
        train_cfg = dict(type='ResumableEpochBasedTrainLoop', max_epochs=3)
        sampler = sampler or dict(type='DefaultSampler', shuffle=True)
    else:
        train_cfg = dict(
            type='ResumableIterBasedTrainLoop', max_iters=33, val_interval=8)
        sampler = sampler or dict(type='InfiniteSampler', shuffle=True)
    settings = dict(
        model=dict(type='DropoutModel'),
        train_dataloader=dict(dict(
            dataset=dict(type='AugmentedDataset'), sampler=sampler,
            batch_size=3, num_workers=workers,
            persistent_workers=workers > 0), **(loader or {})),
        train_cfg=train_cfg,
        **VALIDATION,
        val_cfg=dict(),
        optim_wrapper=dict(optimizer=dict(type='Adam', lr=.01)),
        param_scheduler=[
            dict(type='LinearLR', start_factor=.1, end=20, by_epoch=False),
            dict(type='StepLR', step_size=1, gamma=.7, by_epoch=True)
        ][:None if by_epoch else 1],
        default_hooks=dict(
            logger=dict(type='LoggerHook', interval=5),
            checkpoint=dict(dict(
                type='AtomicCheckpointHook', interval=interval,
                by_epoch=False, max_keep_ckpts=2), **(checkpoint or {}))),
        log_processor=dict(by_epoch=by_epoch),
        visualizer=None,
        custom_hooks=[
            dict(dict(type='EMAHook', momentum=.1), **(ema or {})), *hooks
        ])
    runner, hook = toy_runner(work_dir, **{**settings, **kwargs}), Hook()
    vars(hook).update(on)
    runner.register_hook(hook)
    return runner


def train(folder, stop=None, where='after_train_iter', hooks=(), **kwargs):
    """Train to the end, or until it comes to a place for the n-th time."""
    if stop is not None:
        hooks = [*hooks, dict(type='StopHook', where=where, at=stop)]
    runner = resume_runner(folder, hooks=hooks, **kwargs)
    if stop is None:
        runner.train()
    else:
        with pytest.raises(Stopped):
            runner.train()
    return runner


def seen(runner):
    """The number of samples that a training has loaded."""
    return len(runner.train_dataloader.dataset.loaded)


def checkpoints(folder):
    """Their names in order of the iterations."""
    names = [n for n in os.listdir(folder) if n.endswith('.pth')]
    return sorted(names, key=lambda n: (not n[0] == 'i', n[0], len(n), n))


def warnings_of(runner):
    """A list that will hold what it warns of."""
    lines = []
    runner.logger.warning = lines.append
    return lines


def resumed(folder, **kwargs):
    """Train on to the end; what it warns of, and the runner."""
    runner = resume_runner(folder, resume=True, **kwargs)
    lines = warnings_of(runner)
    runner.train()
    return lines, runner


def final_state(runner):
    """All that a training leaves behind: weights, optimizer, EMA."""
    ema = next(h for h in runner.hooks if isinstance(h, EMAHook))
    return dict(
        model=runner.model.state_dict(),
        ema=ema.ema_model.state_dict(),
        optimizer=runner.optim_wrapper.state_dict(),
        schedulers=[s.state_dict() for s in runner.param_schedulers],
        iteration=runner.iter,
        scalars={
            name: buffer.data
            for name, buffer in runner.message_hub.log_scalars.items()
            if 'time' not in name
        })


def assert_same(a, b, path=''):
    """Equal to the last bit, through all containers."""
    assert type(a) is type(b), path
    if isinstance(a, dict):
        assert list(a) == list(b), path
        for key in a:
            assert_same(a[key], b[key], f'{path}/{key}')
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), path
        for i, pair in enumerate(zip(a, b)):
            assert_same(*pair, f'{path}/{i}')
    elif isinstance(a, (torch.Tensor, np.ndarray)):
        assert np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True), (
            path, a, b)
    else:
        assert a == b or a != a, path


def train_on_ranks(ranks, work_dir, **kwargs):
    """Train in processes of their own; the state of each at the end.

    A rank that left has its exit code, one that failed its error's text.
    """
    cfg = Config(dict(model_wrapper_cfg=dict(
        type='MMDistributedDataParallel', device_ids=None,
        broadcast_buffers=False),
        **{key: kwargs[key] for key in kwargs if 'val_' in key}))

    def train_on(rank):
        runner = resume_runner(work_dir, launcher='pytorch', cfg=cfg, **kwargs)
        try:
            runner.train()
        except SystemExit as left:
            return left.code
        except (Stopped, FloatingPointError, RuntimeError) as error:
            return str(error)
        return final_state(runner)

    return results_of_ranks(train_on, ranks)
