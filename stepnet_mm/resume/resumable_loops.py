"""mmengine's two train loops, resumable from the middle, bit for bit."""
from bisect import bisect
from collections.abc import Iterator
from typing import Any

import torch
from mmengine import dist
from mmengine.registry import LOOPS
from mmengine.runner import BaseLoop, EpochBasedTrainLoop, IterBasedTrainLoop
from torch.utils.data import DataLoader

from ..utils.job_signals import stop_listening
from ..utils.random_state import get_random_state, set_random_state
from .resumable_loader import NO_BATCHES, ResumableLoader
from .training_state import load_buffers, load_early_stopping


class ResumableLoop(BaseLoop):
    """The place in the data and the resumed state, for both loops.

    ``batches`` counts the batches of this epoch (of the run in
    iteration-based training); ``validation_due`` says whether the validation
    after the last iteration or epoch is still to come. With
    :class:`.AtomicCheckpointHook` both are in every checkpoint.
    """
    endless = False
    validating = False
    dataloader: Any

    def _make_resumable(self) -> None:
        self.batches = 0
        self.validation_due = False
        self._resumed: dict | None = None
        self._random: dict | None = None
        # One seed, also with diff_rank_seed: a sample's contains the rank.
        self.seed = dist.all_gather_object(self.runner.seed)[0]
        loader = self.dataloader
        self.dataloader = self._loader = ResumableLoader.of(loader, self.seed)
        # An endless sampler over no samples would never return.
        number = _samples(loader) if self.endless else len(loader)
        if 0 in dist.all_gather_object(number):  # or ranks would wait
            raise ValueError(NO_BATCHES)

    def run(self):
        """Train to the end, from the state of :meth:`resume_from`."""
        try:
            self.runner.call_hook('before_train')
            self._resume()
            self._train()
        except (Exception, KeyboardInterrupt):
            stop_listening()  # a notebook goes on
            raise
        self.runner.call_hook('after_train')
        return self.runner.model

    def progress(self) -> dict:
        """The place in the data, for a checkpoint."""
        batch_sampler = self._loader.batch_sampler
        batch_size = getattr(batch_sampler, 'batch_size', None)
        if isinstance(batch_size, (list, tuple)):  # of several sources
            batch_size = sum(batch_size)
        return dict(
            batches=self.batches,
            validation_due=self.validation_due,
            seed=self.seed,
            sampler_seed=getattr(self._sampler, 'seed', None),
            batch_size=batch_size,
            accumulative_counts=getattr(
                self.runner.optim_wrapper, '_accumulative_counts', None),
            samples=_samples(self._loader))

    @property
    def _sampler(self):
        """The sampler in the batch sampler, or None."""
        return getattr(self._loader.batch_sampler, 'sampler', None)

    def resume_from(self, state: dict) -> None:
        """Go on from a :func:`.training_state` in :meth:`run`.

        If it is empty, iteration and epoch are used alone.
        """
        self._resumed = state
        if not state:
            return
        self.seed = self._loader.numbered.seed = state['seed']
        if state['sampler_seed'] is not None and self._sampler is not None:
            self._sampler.seed = state['sampler_seed']

    def _resume(self) -> None:
        state, self._resumed = self._resumed, None
        if state:
            self._restore_state(state)
        elif state is not None or self._iter:
            # As mmengine: the length of the epoch is not in the checkpoint.
            self.batches = self._iter if self.endless else 0
            self.runner.logger.warning(
                'the checkpoint has no training state (AtomicCheckpointHook '
                f'did not write it): the data go on at batch {self.batches} '
                f'of epoch {self._epoch + 1}, with other random numbers than '
                'before')

    def _restore_state(self, state: dict) -> None:
        """Take the place in the data, and this rank's own state."""
        self.validation_due = state['validation_due']
        self.batches = state['batches']
        load_early_stopping(self.runner, state['early_stopping'])
        if state['world_size'] == dist.get_world_size():
            own = state['ranks'][dist.get_rank()]
            load_buffers(self.runner, own['buffers'])
            self._random = own['random']
        self._adapt_to_settings(state)
        self._restore_random()

    def _adapt_to_settings(self, state: dict) -> None:
        """Log settings that changed; keep the share of samples seen."""
        now = dict(self.progress(), world_size=dist.get_world_size())
        state = dict(now, **state)  # of an older commit: without the counts
        changed = [f'{key} was {state[key]} and is {now[key]}'
                   for key in ('world_size', 'batch_size', 'samples',
                               'accumulative_counts')
                   if state[key] != now[key]]
        if not changed:
            return
        old, new = (s['world_size'] * (s['batch_size'] or 1)
                    for s in (state, now))
        self.batches = state['batches'] * old // new
        if not self.endless:
            self.batches = min(self.batches, len(self._loader))
            self._iter = self._epoch * len(self._loader) + self.batches
        self.runner.logger.warning(
            f'resumed with other settings: {"; ".join(changed)}. The run is '
            'not bit for bit: it goes on after as many samples as were seen, '
            f'at batch {self.batches} of epoch {self._epoch + 1}, with the '
            'same learning rates and schedules (for these auto_scale_lr)')

    def _remaining(self) -> Iterator:
        """The remaining batches, opened with the first one.

        As late as possible: a hook may have iterated over the loader, or set
        its own, such as a prefetcher around this one.
        """
        numbered = self._loader.numbered
        numbered.seed, numbered.epoch = self.seed, self._epoch
        numbered.start, numbered.endless = self.batches, self.endless
        if self.batches:
            self.runner.logger.info(
                f'the batch sampler is led past {self.batches} batches that '
                'were seen; one that looks at each sample (by aspect ratio) '
                'takes minutes for a million')
        # mmengine's iteration-based loop holds an iterator of its own loader
        # from the start, so a loader that a hook sets is not used there.
        for batch in self._loader if self.endless else self.dataloader:
            if numbered.start:  # still: the loader does not use `numbered`
                self.runner.logger.warning(
                    'the loader that a hook has set goes on at its first '
                    f'batch, not at batch {numbered.start} of the epoch')
                numbered.start = 0
            self.batches += 1
            yield batch

    def _restore_random(self) -> None:
        if self._random is not None:
            set_random_state(self._random)

    def _decide_validation(self, count: int, last: int) -> None:
        """Whether a validation comes after ``count`` epochs (iterations).

        Decided twice: for checkpoints that hooks save, and after these hooks,
        which may change the settings.
        """
        changes = bisect(self.dynamic_milestones, count + 1)
        self.val_interval = self.dynamic_intervals[changes - 1]
        self.validation_due = (
            self.runner.val_loop is not None and count >= self.val_begin
            and (count % self.val_interval == 0 or count == last))

    def _validate_if_due(self) -> None:
        if self.validation_due and self.runner.val_loop is not None:
            self.validating = True
            # Before hooks of before_val, which come again after a resume.
            self.random_before_val = get_random_state()
            try:
                self.runner.val_loop.run()
            finally:
                self.validating = False
        self.validation_due = False


@LOOPS.register_module()
class ResumableEpochBasedTrainLoop(ResumableLoop, EpochBasedTrainLoop):
    """``EpochBasedTrainLoop`` that goes on from the middle of an epoch.

    Needs :class:`.AtomicCheckpointHook` for that. Seen batches are skipped in
    the batch sampler and not loaded; hooks get the true ``batch_idx``. Takes
    the arguments of ``EpochBasedTrainLoop``.

    Raises:
        ValueError: if a rank gets no batch, or the samples have no index.
    """

    def __init__(self, runner, dataloader, **kwargs):
        super().__init__(runner, dataloader, **kwargs)
        self._make_resumable()

    def _train(self) -> None:
        self._validate_if_due()
        while self._epoch < self._max_epochs and not self.stop_training:
            self.run_epoch()
            self._decide_validation(self._epoch, self._max_epochs)
            self._validate_if_due()

    def run_epoch(self) -> None:
        """Train what is left of an epoch, and see if a validation is due."""
        start = self.batches
        self.runner.call_hook('before_train_epoch')
        if start:  # these hooks may have drawn random numbers again
            self._restore_random()
        self.runner.model.train()
        for index, batch in enumerate(self._remaining(), start):
            self.run_iter(index, batch)
        self.batches = 0
        self._decide_validation(self._epoch + 1, self._max_epochs)
        self.runner.call_hook('after_train_epoch')
        self._epoch += 1


@LOOPS.register_module()
class ResumableIterBasedTrainLoop(ResumableLoop, IterBasedTrainLoop):
    """``IterBasedTrainLoop`` that goes on without replaying the data.

    Needs :class:`.AtomicCheckpointHook` for that. A finite sampler begins
    anew when it is through, without a restart of the workers. Takes the
    arguments of ``IterBasedTrainLoop``.
    """
    endless = True

    def __init__(self, runner, dataloader, **kwargs):
        BaseLoop.__init__(self, runner, dataloader)
        self._make_resumable()
        loader = self.dataloader
        # mmengine 0.10.7 opens the iterator here, and with it the workers,
        # which would take samples out of the stream.
        unopened: DataLoader = DataLoader(
            loader.dataset, batch_sampler=[], generator=torch.Generator())
        super().__init__(runner, unopened, **kwargs)
        self.dataloader = loader
        self.dataloader_iterator = BatchStream(self)

    def _train(self) -> None:
        self.runner.call_hook('before_train_epoch')
        self._restore_random()
        self._validate_if_due()
        while self._iter < self._max_iters and not self.stop_training:
            self.runner.model.train()
            batch = next(self.dataloader_iterator)
            self._decide_validation(self._iter + 1, self._max_iters)
            self.run_iter(batch)
            self._decide_validation(self._iter, self._max_iters)
            self._validate_if_due()
        self.runner.call_hook('after_train_epoch')


class BatchStream:
    """A loop's endless batches, opened with the first one and counted.

    It stands where mmengine has an iterator.
    """

    def __init__(self, loop: ResumableIterBasedTrainLoop):
        self._loop = loop
        self._batches: Iterator = iter(())

    def __iter__(self):
        return self

    def __next__(self):
        for batch in self._batches:
            return batch
        # An error, or a hook's pass with these workers, has ended them.
        self._batches = self._loop._remaining()
        return next(self._batches)


def in_own_validation(runner) -> bool:
    """Whether a loop's own validation runs, and not a hook's."""
    loop = runner._train_loop
    return isinstance(loop, ResumableLoop) and loop.validating


def _samples(loader: DataLoader) -> int | None:
    """The size of a dataset; None if it is the sampler that knows."""
    dataset: Any = loader.dataset
    return len(dataset) if hasattr(dataset, '__len__') else None
