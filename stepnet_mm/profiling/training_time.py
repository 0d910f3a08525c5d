"""How long a training takes, from some of its iterations on this machine."""
import time
from bisect import bisect
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.runner import (
    BaseLoop,
    EpochBasedTrainLoop,
    IterBasedTrainLoop,
)
from torch.utils.data import DataLoader

from ..launch.entry import build_runner
from .timing import peak_memory, synchronize

#: Before those that count, beside what loader workers have ready by then:
#: caches, the start of the workers, cuDNN's choices.
WARM_ITERATIONS = 10


@dataclass(frozen=True)
class TrainingTime:
    """What a training takes, in s.

    Not in it are the start, what is done once an epoch (checkpoints, the start
    of loader workers), and what evaluators compute at the end of a validation.

    Attributes:
        iteration (float): an iteration, the mean over those that were timed.
        loading (float): how much of it the loop waited for its batch; the
            first one of an epoch is left out.
        iterations (int): of the whole training.
        timed (int): iterations that count.
        batch_size (int): of the training, images.
        validation (float): one validation; 0 without any.
        validations (int): of the whole training.
        peak_memory (int): bytes, of CUDA tensors or the resident set.
    """
    iteration: float
    loading: float
    iterations: int
    timed: int
    batch_size: int
    validation: float
    validations: int
    peak_memory: int

    @property
    def seconds(self) -> float:
        """The whole training, in s."""
        return (self.iteration * self.iterations
                + self.validation * self.validations)


def time_training(cfg: Config, timed: int) -> TrainingTime:
    """Train a config for some iterations, then validate some batches.

    Loader, hooks, precision and compilation are the config's own. The work
    dir is a temporary one, on the same disk as the config's, and nothing is
    kept or sent away.

    Args:
        cfg (Config): as tools/train.py would train it; it is changed.
        timed (int): how many iterations, and batches of a validation, count;
            fewer where there are no more.

    Raises:
        ValueError: if there is no batch, or the training has a loop of another
            kind than mmengine's.
    """
    _keep_outputs_local(cfg)
    with TemporaryDirectory(prefix='training_time_',
                            dir=_existing_parent(cfg.work_dir)) as folder:
        cfg.work_dir = folder
        runner = build_runner(cfg)
        watch = _Stopwatch(timed)
        runner.register_hook(_BatchIsThere(watch.train), 'HIGHEST')
        runner.register_hook(watch, 'LOWEST')
        if _is_stopped(runner.train):
            runner.call_hook('after_train')  # hooks give back what they took
        validation = _time_validation(runner, watch)
        runner.call_hook('after_run')
        return watch.found(runner, validation)


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
            f'{type(loop).__name__}, whose iterations cannot be counted; '
            'time a config with one of these')
    last = (loop.max_epochs if isinstance(loop, EpochBasedTrainLoop)
            else loop.max_iters)

    def interval(count: int) -> int:
        changes = bisect(loop.dynamic_milestones, count + 1)
        return loop.dynamic_intervals[changes - 1]

    return sum(count % interval(count) == 0 or count == last
               for count in range(max(loop.val_begin, 1), last + 1))


class _Enough(BaseException):
    """All that was to be timed is; no error that a loop may catch."""


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

    def expect(self, loader: DataLoader, total: int,
               device: torch.device) -> None:
        """From here on it is done so often, on a device."""
        ready = loader.num_workers * (loader.prefetch_factor or 0)
        self.warm = min(WARM_ITERATIONS + ready, total // 2)
        self.timed = min(self.timed, total - self.warm)
        self.device = device
        self.start = self.end = time.perf_counter()

    @property
    def counted(self) -> int:
        """How many times count so far."""
        return max(self.seen - self.warm, 0)

    @property
    def mean(self) -> float:
        """Seconds of one."""
        return (self.end - self.start) / self.counted

    def begin(self) -> None:
        """Its batch is there."""
        if self.seen >= self.warm:
            self.waited += time.perf_counter() - self.end

    def finish(self) -> None:
        """It is done once more.

        Raises:
            _Enough: if it was the last one.
        """
        self.seen += 1
        if self.seen == self.warm or self.counted == self.timed:
            synchronize(self.device)
        self.end = time.perf_counter()
        if self.seen == self.warm:
            self.start = self.end
        if self.counted == self.timed:
            raise _Enough


class _BatchIsThere(Hook):
    """Before all other hooks: ends the wait for a batch."""

    def __init__(self, laps: _Laps):
        self.laps = laps

    def before_train_iter(self, runner, batch_idx, data_batch=None) -> None:
        """Count the wait, but not what is done between epochs."""
        if batch_idx:
            self.laps.begin()


class _Stopwatch(Hook):
    """Stops a training, and then a validation, once enough is timed."""

    def __init__(self, timed: int):
        self.train, self.val = _Laps(timed), _Laps(timed)
        self.validations = 0

    def before_train(self, runner) -> None:
        """Count the validations, and have none in between."""
        loop = runner.train_loop
        validations = count_validations(loop)
        if runner.val_loop is not None:
            self.validations = validations
            loop.val_begin = inf
        self.train.expect(loop.dataloader, loop.max_iters, _device_of(runner))

    def before_val(self, runner) -> None:
        """Begin."""
        loader = runner.val_loop.dataloader
        self.val.expect(loader, len(loader), _device_of(runner))

    def after_train_iter(self, *args, **kwargs) -> None:
        """All other hooks are done with it."""
        self.train.finish()

    def after_val_iter(self, *args, **kwargs) -> None:
        """All other hooks are done with it."""
        self.val.finish()

    def found(self, runner, validation: float) -> TrainingTime:
        """What was timed.

        Raises:
            ValueError: if the training had no iteration.
        """
        if not self.train.counted:
            raise ValueError(
                'train_dataloader: expected batches, got none; look at '
                'batch_size and drop_last, and at how many images there are')
        return TrainingTime(
            iteration=self.train.mean,
            loading=self.train.waited / self.train.counted,
            iterations=runner.train_loop.max_iters,
            timed=self.train.counted,
            # A loader with a batch sampler of its own does not know it.
            batch_size=runner.cfg.train_dataloader.get('batch_size', 1),
            validation=validation,
            validations=self.validations,
            peak_memory=peak_memory(self.train.device))


def _time_validation(runner, watch: _Stopwatch) -> float:
    """Seconds of one validation; whole where a loop calls no hooks."""
    if not watch.validations:
        return 0.
    start = time.perf_counter()
    if _is_stopped(runner.val_loop.run):
        return watch.val.mean * len(runner.val_loop.dataloader)
    return time.perf_counter() - start


def _is_stopped(run: Callable[[], object]) -> bool:
    """Run a loop until enough is timed; whether it was stopped for that."""
    try:
        run()
    except _Enough:
        return True
    return False


def _keep_outputs_local(cfg: Config) -> None:
    """Let nothing but the work dir be written to."""
    cfg.log_level = 'WARNING'
    if cfg.get('visualizer'):
        cfg.visualizer.vis_backends = [dict(type='LocalVisBackend')]
        cfg.visualizer.pop('save_dir', None)
    hooks = [*(cfg.get('default_hooks') or {}).values(),
             *(cfg.get('custom_hooks') or [])]
    for hook in filter(None, hooks):
        hook.pop('out_dir', None)


def _existing_parent(path: str) -> Path:
    return next(p for p in Path(path).absolute().parents if p.is_dir())


def _device_of(runner) -> torch.device:
    return next(runner.model.parameters()).device
