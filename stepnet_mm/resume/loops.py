"""mmengine's two train loops, able to go on from the middle, bit for bit."""
from mmengine.registry import LOOPS
from mmengine.runner import EpochBasedTrainLoop, IterBasedTrainLoop

from .resumable_loop import ResumableLoop


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
        ValueError: if a rank gets no batch, or the samples have no index.
    """

    def __init__(self, runner, dataloader, **kwargs):
        super().__init__(runner, self._prepare(runner, dataloader), **kwargs)

    def _train(self) -> None:
        if self.validation_due:
            self._validate()
        while self._epoch < self._max_epochs and not self.stop_training:
            self.run_epoch()
            if self.validation_due:
                self._validate()

    def run_epoch(self) -> None:
        """Train what is left of an epoch, and see if a validation is due."""
        start = self.batches
        self.runner.call_hook('before_train_epoch')
        if start:  # these hooks may have drawn random numbers again
            self._restore_random()
        self.runner.model.train()
        for index, batch in enumerate(self._open(), start):
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

    def _train(self) -> None:
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

    def _next_batch(self):
        if self.dataloader_iterator is None:
            self.dataloader_iterator = self._open()
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
