"""A data loader that starts at any batch and seeds each sample."""
import copy
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from itertools import count, islice
from typing import Any

import torch
from mmengine.dist import get_rank
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from ..utils.data_errors import data_errors
from ..utils.random_state import seed_generators, seeded

KEY = 'train_dataloader'
#: Training would end at once, or never come to its first iteration.
NO_BATCHES = ('train_dataloader: expected batches, got none from its batch '
              'sampler; check ann_file, filter_cfg, batch_size and drop_last, '
              'or set exact_resume=False to train nothing')


class ResumableLoader(DataLoader):
    """A loader made by :meth:`of`; only its iterators skip and seed.

    ``dataset``, ``batch_sampler`` and all else are those of the original, as
    hooks expect them.
    """
    #: Where the next iteration begins.
    numbered: 'NumberedBatches'

    @classmethod
    def of(cls, loader: DataLoader, seed: int):
        """The same batches, with a movable start and seeded samples.

        The seed is the same on all ranks.

        Raises:
            ValueError: if the samples have no index.
        """
        if not isinstance(loader, DataLoader) or (
                loader.batch_sampler is None
                or isinstance(loader.dataset, IterableDataset)):
            raise ValueError(
                'train_dataloader: expected batches of indexed samples, whose '
                'place can be found again, got a dataset without indices or '
                'batch_size=None; set exact_resume=False')
        resumable = copy.copy(loader)
        resumable.__class__ = cls
        vars(resumable).update(
            numbered=NumberedBatches(loader.batch_sampler, seed),
            # A loader without one draws from the training's generator.
            generator=torch.Generator(),
            in_order=True,
            _iterator=None)
        return resumable

    def _get_iterator(self):
        self.numbered.batch_sampler = self.batch_sampler  # of a hook, too
        loader = copy.copy(self)
        vars(loader).update(  # torch forbids to set them
            dataset=SeededSamples(self.dataset), batch_sampler=self.numbered,
            worker_init_fn=partial(_init_worker, self.worker_init_fn))
        return DataLoader._get_iterator(loader)


def _init_worker(init: Callable[[int], object] | None, number: int) -> None:
    """A ``worker_init_fn``, for which the dataset is the loader's own."""
    info: Any = get_worker_info()
    # torch forbids to set it.
    vars(info)['dataset'] = info.dataset.dataset
    if init is not None:
        init(number)


class NumberedBatches:
    """A batch sampler that starts at any batch and tells each sample's place.

    Set ``epoch``, and for the next iteration alone ``start``, its first batch,
    and ``endless``: whether it repeats the batches for ever, with calls of the
    sampler's ``set_epoch``, if any. A hook's own iteration has one pass.
    """

    def __init__(self, batch_sampler, seed: int):
        self.batch_sampler = batch_sampler
        self.seed = seed
        self.epoch = self.start = 0
        self.endless = False

    def __len__(self) -> int:
        return len(self.batch_sampler)

    def __iter__(self) -> Iterator[list]:
        # Of two iterators that torch makes where there are workers it takes
        # batches from one. A generator runs at its first batch, so the other
        # one does not use up `start`.
        batches = iter(
            self._repeated() if self.endless else self.batch_sampler)
        start, self.start, self.endless = self.start, 0, False
        rank = get_rank()
        # For samplers that draw from the global generators.
        apart = seeded(self.seed, self.epoch)
        with apart:
            deque(islice(batches, start), maxlen=0)
        for number in count(start):
            with apart:
                batch = next(batches, None)
            if batch is None:
                return
            yield [(index, (self.seed, self.epoch, number, rank, offset))
                   for offset, index in enumerate(batch)]

    def _repeated(self) -> Iterator[list]:
        sampler: Any = getattr(self.batch_sampler, 'sampler', None)
        for epoch in count():
            if hasattr(sampler, 'set_epoch'):
                sampler.set_epoch(epoch)
            batch = None
            for batch in self.batch_sampler:
                yield batch
            if batch is None:
                raise ValueError(NO_BATCHES)


class SeededSamples:
    """The samples of a dataset, drawn with generators of their own.

    They are seeded by (seed, epoch, number of the batch, rank, offset in the
    batch). So neither the number of workers nor earlier samples matter, and a
    sample that comes twice (class-aware sampling, repeated augmentation) is
    augmented in two ways.
    """

    def __init__(self, dataset):
        self.dataset = dataset

    def __getitem__(self, placed: tuple):
        """The sample of an index at a place."""
        index, place = placed
        with _drawn_at(place), data_errors(KEY):
            return self.dataset[index]


def _drawn_at(place: tuple):
    """A context with the random generators of a place."""
    if not get_worker_info():
        return seeded(*place)
    seed_generators(*place)  # a worker's serve nothing else
    return nullcontext()
