"""A data loader that can begin at any batch, whatever its workers draw."""
from itertools import count, islice

import torch
from mmengine.dist import get_rank
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    get_worker_info,
)

from ..utils.random_state import seed_generators, seeded

#: Training would end at once, or never come to its first iteration.
NO_BATCHES = ('train_dataloader: expected batches, got none from its batch '
              'sampler; check batch_size and drop_last')


def resumable_loader(loader: DataLoader,
                     seed: int,
                     endless: bool = False) -> DataLoader:
    """The same batches, with randomness by place and a movable start.

    Each sample is drawn with generators seeded by (seed, epoch, number of
    the batch, rank, offset in the batch). So neither the number of workers nor
    what was loaded before matters, and a sample that comes twice (class-aware
    sampling, repeated augmentation) is augmented in two ways.

    Args:
        loader (DataLoader): any with a batch sampler.
        seed (int): the same on all ranks.
        endless (bool): whether the batches begin anew when they are through,
            ``set_epoch`` called on the sampler where it has one.

    Returns:
        DataLoader: its ``batch_sampler`` is a :class:`NumberedBatches`.

    Raises:
        ValueError: if the samples have no index.
    """
    if loader.batch_sampler is None or isinstance(loader.dataset,
                                                  IterableDataset):
        raise ValueError(
            'train_dataloader: expected batches of indexed samples, whose '
            'place can be found again, got a dataset without indices or '
            'batch_size=None; set exact_resume=False')
    numbered = NumberedBatches(loader.batch_sampler, endless)
    resumable = DataLoader(
        SeededDataset(loader.dataset, seed),
        batch_sampler=numbered,
        num_workers=loader.num_workers,
        collate_fn=loader.collate_fn,
        pin_memory=loader.pin_memory,
        timeout=loader.timeout,
        worker_init_fn=loader.worker_init_fn,
        multiprocessing_context=loader.multiprocessing_context,
        prefetch_factor=loader.prefetch_factor,
        persistent_workers=loader.persistent_workers,
        # A loader without one draws from the training's generator.
        generator=torch.Generator())
    # torch leaves them out beside a batch sampler; hooks ask for them.
    vars(resumable).update(
        batch_size=numbered.batch_size, sampler=numbered.sampler)
    return resumable


class NumberedBatches:
    """A batch sampler whose samples know their place.

    Args:
        batch_sampler (BatchSampler): gives lists of indices.
        endless (bool): as in :func:`resumable_loader`.
    """

    def __init__(self, batch_sampler, endless: bool = False):
        self.batch_sampler = batch_sampler
        self.endless = endless
        #: The number of the first batch of the next iteration.
        self.start = 0
        self.epoch = 0

    @property
    def sampler(self):
        """That of the batch sampler, None where it has none."""
        return getattr(self.batch_sampler, 'sampler', None)

    @property
    def batch_size(self) -> int | None:
        """That of the batch sampler, None where it has none."""
        return getattr(self.batch_sampler, 'batch_size', None)

    @property
    def drop_last(self) -> bool:
        """That of the batch sampler, False where it has none."""
        return getattr(self.batch_sampler, 'drop_last', False)

    def __len__(self) -> int:
        return len(self.batch_sampler)

    def __iter__(self):
        start, self.start = self.start, 0
        batches = self._endless() if self.endless else self.batch_sampler
        rank = get_rank()
        for number, batch in islice(enumerate(batches), start, None):
            yield [(index, (self.epoch, number, rank, offset))
                   for offset, index in enumerate(batch)]

    def _endless(self):
        for epoch in count():
            # As mmengine, whose loop calls it from the second time on.
            if epoch and hasattr(self.sampler, 'set_epoch'):
                self.sampler.set_epoch(epoch)
            batch = None
            for batch in self.batch_sampler:
                yield batch
            if batch is None:
                raise ValueError(NO_BATCHES)


class SeededDataset(Dataset):
    """A dataset whose samples draw from generators of their own.

    Everything else of the dataset is read and set through this one, since
    hooks change its pipeline.

    Args:
        dataset (Dataset): any with indices.
        seed (int): the first number of every seed.
    """

    def __init__(self, dataset: Dataset, seed: int):
        vars(self).update(_dataset=dataset, _seed=seed)

    def reseed(self, seed: int) -> None:
        """Draw with another first number from here on."""
        vars(self)['_seed'] = seed

    def __getitem__(self, key: tuple):
        index, place = key
        if get_worker_info() is None:
            with seeded(self._seed, *place):
                return self._dataset[index]
        # The generators of a worker serve nothing else.
        seed_generators(self._seed, *place)
        return self._dataset[index]

    def __getitems__(self, keys: list) -> list:
        return [self[key] for key in keys]

    def __len__(self) -> int:
        return len(self._dataset)

    def __getattr__(self, name):
        return getattr(vars(self)['_dataset'], name)

    def __setattr__(self, name, value):
        setattr(self._dataset, name, value)

    def __reduce__(self):
        return SeededDataset, (self._dataset, self._seed)
