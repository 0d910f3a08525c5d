"""How long a training takes, from some of its iterations on this machine."""
import tempfile
import time
from bisect import bisect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.runner import (
    BaseLoop,
    EpochBasedTrainLoop,
    IterBasedTrainLoop,
)

from ..launch.entry import build_runner
from .timing import peak_memory, synchronize

#: Before those that count: caches, loader workers, cuDNN's choices.
WARM_ITERATIONS = 10


@dataclass(frozen=True)
class TrainingTime:
    """What a training takes, in s.

    Attributes:
        iteration (float): an iteration, the mean over those that were timed.
        loading (float): how much of it the loop waited for its batch.
        iterations (int): of the whole training.
        timed (int): iterations that count.
        batch_size (int): of the training, images.
        val_batch (float): a batch of a validation; 0 without one. What
            evaluators compute at a validation's end is not in it.
        val_batches (int): of a validation.
        validations (int): of the whole training.
        peak_memory (int): bytes, of CUDA tensors or the resident set.
    """
    iteration: float
    loading: float
    iterations: int
    timed: int
    batch_size: int
    val_batch: float
    val_batches: int
    validations: int
    peak_memory: int

    @property
    def training(self) -> float:
        """All iterations, in s."""
        return self.iteration * self.iterations

    @property
    def validation(self) -> float:
        """All validations, in s."""
        return self.val_batch * self.val_batches * self.validations

    @property
    def seconds(self) -> float:
        """The whole training, in s."""
        return self.training + self.validation


def time_training(cfg: Config, timed: int) -> TrainingTime:
    """Train a config for some iterations, then validate some batches.

    Loader, hooks, precision and compilation are the config's own. Nothing is
    kept: its work dir is a temporary one, and only local files are logged to.

    Args:
        cfg (Config): as tools/train.py would train it; it is changed.
        timed (int): how many iterations, and batches of a validation, count;
            fewer where there are no more.

    Raises:
        ValueError: if the training has a loop that is none of mmengine's.
    """
    if cfg.get('visualizer'):
        cfg.visualizer.vis_backends = [dict(type='LocalVisBackend')]
    cfg.get('default_hooks', {}).get('checkpoint', {}).pop('out_dir', None)
    cfg.log_level = 'WARNING'
    with tempfile.TemporaryDirectory() as folder:
        cfg.work_dir = str(Path(folder) / 'work_dir')
        watch = _Stopwatch(timed)
        runner = build_runner(cfg)
        runner.register_hook(watch, 'LOWEST')
        _until_enough(runner.train)
        if watch.validations:
            _until_enough(runner.val_loop.run)
        return watch.found(runner)


class _Enough(Exception):
    """All that was to be timed is."""


def _until_enough(run: Callable[[], object]) -> None:
    with suppress(_Enough):
        run()


class _Laps:
    """Times what is done again and again, its first times left out.

    Args:
        timed (int): how many times count, at most.
    """

    def __init__(self, timed: int):
        self.timed = timed
        self.warm = self.seen = 0
        self.start = self.end = self.waited = 0.
        self.device = torch.device('cpu')

    def expect(self, total: int, device: torch.device) -> None:
        """From here on it is done so often, on a device."""
        self.warm = min(WARM_ITERATIONS, total // 2)
        self.timed = min(self.timed, total - self.warm)
        self.device = device
        self.start = self.end = time.perf_counter()

    @property
    def mean(self) -> float:
        """Seconds of one."""
        return (self.end - self.start) / self.timed

    @property
    def mean_wait(self) -> float:
        """Seconds of one until its batch is there."""
        return self.waited / self.timed

    def begin(self) -> None:
        """Its batch is there."""
        if self.seen >= self.warm:
            self.waited += time.perf_counter() - self.end

    def finish(self) -> None:
        """It is over.

        Raises:
            _Enough: if it was the last one.
        """
        self.seen += 1
        is_last = self.seen == self.warm + self.timed
        if is_last or self.seen == self.warm:
            synchronize(self.device)
        self.end = time.perf_counter()
        if self.seen == self.warm:
            self.start = self.end
        if is_last:
            raise _Enough


class _Stopwatch(Hook):
    """Stops a training, and then a validation, once enough is timed."""

    def __init__(self, timed: int):
        self.train, self.val = _Laps(timed), _Laps(timed)
        self.validations = 0

    def before_train(self, runner) -> None:
        """Count the validations, and have none in between."""
        loop = runner.train_loop
        if runner.val_loop is not None:
            self.validations = count_validations(loop)
            loop.val_begin = inf
        self.train.expect(loop.max_iters, _device_of(runner))

    def before_val(self, runner) -> None:
        """Begin."""
        self.val.expect(len(runner.val_dataloader), _device_of(runner))

    def before_train_iter(self, *args, **kwargs) -> None:
        """A batch has been loaded."""
        self.train.begin()

    def after_train_iter(self, *args, **kwargs) -> None:
        """All other hooks are done with it."""
        self.train.finish()

    def after_val_iter(self, *args, **kwargs) -> None:
        """All other hooks are done with it."""
        self.val.finish()

    def found(self, runner) -> TrainingTime:
        """What was timed."""
        validated = self.validations > 0
        return TrainingTime(
            iteration=self.train.mean,
            loading=self.train.mean_wait,
            iterations=runner.train_loop.max_iters,
            timed=self.train.timed,
            # A loader with a batch sampler of its own does not know it.
            batch_size=runner.cfg.train_dataloader.batch_size,
            val_batch=self.val.mean if validated else 0.,
            val_batches=len(runner.val_dataloader) if validated else 0,
            validations=self.validations,
            peak_memory=peak_memory(self.train.device))


def _device_of(runner) -> torch.device:
    return next(runner.model.parameters()).device


def count_validations(loop: BaseLoop) -> int:
    """How often a training loop validates, its dynamic intervals included.

    Args:
        loop (BaseLoop): one of mmengine's, or of their kind.

    Raises:
        ValueError: if it is none.
    """
    if not isinstance(loop, (EpochBasedTrainLoop, IterBasedTrainLoop)):
        raise ValueError(
            'train_cfg.type: expected a loop of the kind of mmengine\'s '
            'EpochBasedTrainLoop or IterBasedTrainLoop, got '
            f'{type(loop).__name__}, whose validations cannot be counted')
    last = (loop.max_epochs if isinstance(loop, EpochBasedTrainLoop)
            else loop.max_iters)

    def interval(count: int) -> int:
        changes = bisect(loop.dynamic_milestones, count + 1)
        return loop.dynamic_intervals[changes - 1]

    return sum(count % interval(count) == 0 or count == last
               for count in range(loop.val_begin, last + 1))
