"""mmengine's two train loops, able to go on from the middle, bit for bit."""
from bisect import bisect

from mmengine import dist
from mmengine.registry import LOOPS
from mmengine.runner import EpochBasedTrainLoop, IterBasedTrainLoop
from torch.utils.data import DataLoader

from ..utils.random_state import set_random_state
from .resumable_loader import resumable_loader
from .training_state import load_buffers


class ResumableLoop:
    """What both loops share: the data by place, and the state of a stop.

    ``batches`` counts those taken in this epoch (of the whole run in
    iteration-based training), ``validation_due`` says whether the validation
    that belongs to the last iteration or epoch is still to come. With
    :class:`.AtomicCheckpointHook` both are in every checkpoint.
    """
    endless = False

    def _prepare(self, runner, dataloader) -> DataLoader:
        if isinstance(dataloader, dict):
            dataloader = runner.build_dataloader(
                dataloader,
                seed=runner.seed,
                diff_rank_seed=runner._randomness_cfg.get(
                    'diff_rank_seed', False))
        _check_size(dataloader.dataset)
        self.batches = 0
        self.validation_due = False
        self._resumed = self._random = None
        # With diff_rank_seed each rank has its own; the rank is in the seed
        # of a sample anyway.
        self.seed = dist.all_gather_object(runner.seed)[0]
        return resumable_loader(dataloader, self.seed, self.endless)

    def position(self) -> dict:
        """Where in the data it is, for a checkpoint."""
        numbered = self.dataloader.batch_sampler
        return dict(
            batches=self.batches,
            validation_due=self.validation_due,
            seed=self.seed,
            sampler_seed=getattr(numbered.sampler, 'seed', None),
            batch_size=_total(numbered.batch_size),
            samples=len(self.dataloader.dataset))

    def resume_from(self, state: dict) -> None:
        """Go on from a :func:`.training_state` once :meth:`run` is called.

        Args:
            state (dict): left empty, from iteration and epoch alone.
        """
        self._resumed = state

    def _resume(self) -> None:
        """Take the place in the data, and this rank's own state."""
        state, self._resumed = self._resumed, None
        if state is None and self._iter == 0:
            return
        if not state:
            self.batches = self._batches_by_count()
            self._begin_at(self.batches)
            self.runner.logger.warning(
                'the checkpoint has no training state (AtomicCheckpointHook '
                'did not write it): the data go on '
                f'{self._beginning()}, with other random numbers than before')
            return
        self.seed = state['seed']
        self.dataloader.dataset.reseed(self.seed)
        if state['sampler_seed'] is not None:
            self.dataloader.batch_sampler.sampler.seed = state['sampler_seed']
        self.validation_due = state['validation_due']
        self.batches = state['batches']
        if state['world_size'] == dist.get_world_size():
            own = state['ranks'][dist.get_rank()]
            load_buffers(self.runner, own['buffers'])
            self._random = own['random']
            _warn_of_order(self.runner)
        self._compare(state)
        self._begin_at(self.batches)
        self._restore_random()

    def _compare(self, state: dict) -> None:
        """Say what is not as it was, and keep the share of samples seen."""
        now = dict(self.position(), world_size=dist.get_world_size())
        changed = [
            f'{key} was {state[key]} and is {now[key]}'
            for key in ('world_size', 'batch_size', 'samples')
            if state[key] != now[key]
        ]
        if not changed:
            return
        old, new = (s['world_size'] * (s['batch_size'] or 1)
                    for s in (state, now))
        self.batches = state['batches'] * old // new
        self._recount()
        self.runner.logger.warning(
            f'resumed with other settings: {"; ".join(changed)}. The run goes '
            'on, but not bit for bit: it continues after as many samples as '
            f'were seen, at batch {self.batches}'
            f'{"" if self.endless else f" of epoch {self._epoch + 1}"}; '
            'learning rates and schedules are not touched (auto_scale_lr is '
            'for that)')

    def _begin_at(self, batch: int) -> None:
        numbered = self.dataloader.batch_sampler
        numbered.start, numbered.epoch = batch, self._epoch

    def _restore_random(self) -> None:
        if self._random is not None:
            set_random_state(self._random)

    def _validation_follows(self, count: int, last: int) -> bool:
        """Whether a validation comes after so many epochs (iterations)."""
        changes = bisect(self.dynamic_milestones, count + 1)
        self.val_interval = self.dynamic_intervals[changes - 1]
        return (self.runner.val_loop is not None and count >= self.val_begin
                and (count % self.val_interval == 0 or count == last))

    def _validate(self) -> None:
        self.runner.val_loop.run()
        self.validation_due = False


@LOOPS.register_module()
class ResumableEpochBasedTrainLoop(ResumableLoop, EpochBasedTrainLoop):
    """``EpochBasedTrainLoop`` that goes on from the middle of an epoch.

    Needs :class:`.AtomicCheckpointHook` for that. Batches that were seen are
    passed over in the batch sampler, nothing of them is loaded; hooks get the
    true ``batch_idx``.

    Args:
        runner (Runner): the runner.
        dataloader (DataLoader or dict): of the training.
        **kwargs: those of ``EpochBasedTrainLoop``.

    Raises:
        ValueError: if the dataset is smaller than the number of ranks, or
            its samples have no index.
    """

    def __init__(self, runner, dataloader, **kwargs):
        super().__init__(runner, self._prepare(runner, dataloader), **kwargs)

    def run(self):
        self.runner.call_hook('before_train')
        self._resume()
        if self.validation_due:
            self._validate()
        while self._epoch < self._max_epochs and not self.stop_training:
            self.run_epoch()
            if self.validation_due:
                self._validate()
        self.runner.call_hook('after_train')
        return self.runner.model

    def run_epoch(self) -> None:
        start = self.batches
        self._begin_at(start)
        self.runner.call_hook('before_train_epoch')
        if start:  # the hooks ran once before, and may have drawn
            self._restore_random()
        self.runner.model.train()
        for index, batch in enumerate(self.dataloader, start):
            self.batches = index + 1
            self.run_iter(index, batch)
        self.batches = 0
        self.validation_due = self._validation_follows(
            self._epoch + 1, self._max_epochs)
        self.runner.call_hook('after_train_epoch')
        self._epoch += 1

    def _batches_by_count(self) -> int:
        # As mmengine: how long the epoch was then is not known.
        return 0

    def _beginning(self) -> str:
        return f'at the beginning of epoch {self._epoch + 1}'

    def _recount(self) -> None:
        self.batches = min(self.batches, len(self.dataloader))
        self._iter = self._epoch * len(self.dataloader) + self.batches


@LOOPS.register_module()
class ResumableIterBasedTrainLoop(ResumableLoop, IterBasedTrainLoop):
    """``IterBasedTrainLoop`` that goes on without replaying the data.

    Needs :class:`.AtomicCheckpointHook` for that. A finite sampler begins
    anew when it is through, without a restart of the workers.

    Args:
        runner (Runner): the runner.
        dataloader (DataLoader or dict): of the training.
        **kwargs: those of ``IterBasedTrainLoop``.

    Raises:
        ValueError: as the epoch-based one does.
    """
    endless = True

    def __init__(self, runner, dataloader, **kwargs):
        loader = self._prepare(runner, dataloader)
        # mmengine 0.10.7 opens the iterator here, and with it the workers,
        # which would take samples out of the stream.
        super().__init__(runner, _Unopened(loader.dataset), **kwargs)
        self.dataloader = loader
        self.dataloader_iterator = None

    def run(self):
        self.runner.call_hook('before_train')
        self._resume()
        self.runner.call_hook('before_train_epoch')
        self._restore_random()
        if self.validation_due:
            self._validate()
        while self._iter < self._max_iters and not self.stop_training:
            self.runner.model.train()
            batch = self._next_batch()
            self.batches += 1
            self.validation_due = self._validation_follows(
                self._iter + 1, self._max_iters)
            self.run_iter(batch)
            if self.validation_due:
                self._validate()
        self.runner.call_hook('after_train_epoch')
        self.runner.call_hook('after_train')
        return self.runner.model

    def _next_batch(self):
        if self.dataloader_iterator is None:
            self.dataloader_iterator = iter(self.dataloader)
        return next(self.dataloader_iterator)

    def _batches_by_count(self) -> int:
        return self._iter

    def _beginning(self) -> str:
        return f'from iteration {self._iter}'

    def _recount(self) -> None:
        """The schedule counts iterations; it stays where it was."""


class _Unopened:
    """Stands for a loader whose iterator is not to be opened yet."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __iter__(self):
        return iter(())


def _warn_of_order(runner) -> None:
    """DDP sorts gradients anew after its first step; two ranks' sum is one."""
    if dist.get_world_size() > 2 and not getattr(
            runner.model, 'find_unused_parameters', True):
        runner.logger.warning(
            'with more than two ranks DDP sums the first step after a start '
            'in another order, so this resume is exact up to rounding; '
            'find_unused_parameters=True makes it bit for bit')


def _total(batch_size) -> int:
    """Of samplers that mix sources, mmdet's, it is a list."""
    return sum(batch_size) if isinstance(batch_size,
                                         (list, tuple)) else batch_size


def _check_size(dataset) -> None:
    if len(dataset) < dist.get_world_size():
        raise ValueError(
            f'train_dataloader.dataset: got {len(dataset)} samples for '
            f'{dist.get_world_size()} ranks, expected at least one each; '
            'start fewer ranks or check ann_file and filter_cfg')
