"""A data loader that can start at any batch, with seeded samples."""
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count, islice

import torch
from mmengine.dist import get_rank
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from ..utils.random_state import seed_generators, seeded

#: Training would end at once, or never come to its first iteration.
NO_BATCHES = ('train_dataloader: expected batches, got none from its batch '
              'sampler; check ann_file, filter_cfg, batch_size and drop_last, '
              'or set exact_resume=False to train nothing')


@dataclass
class Place:
    """Where the next iteration over the batches begins."""
    seed: int
    epoch: int = 0
    start: int = 0


def resumable_loader(loader: DataLoader,
                     place: Place,
                     endless: bool = False) -> DataLoader:
    """The same batches, with seeded samples and a movable start.

    Each sample is drawn with generators seeded by (seed, epoch, number of
    the batch, rank, offset in the batch). So neither the number of workers nor
    earlier samples matter, and a sample that comes twice (class-aware
    sampling, repeated augmentation) is augmented in two ways.

    Args:
        loader (DataLoader): any with a batch sampler.
        place (Place): read when an iteration begins; ``start`` is 0
            afterwards. The seed is the same on all ranks.
        endless (bool): repeat the batches for ever, with calls of the
            sampler's ``set_epoch``, if any.

    Returns:
        DataLoader: attributes of the original dataset and batch sampler are
        read and set through its own.

    Raises:
        ValueError: if the samples have no index.
    """
    if loader.batch_sampler is None or isinstance(loader.dataset,
                                                  IterableDataset):
        raise ValueError(
            'train_dataloader: expected batches of indexed samples, whose '
            'place can be found again, got a dataset without indices or '
            'batch_size=None; set exact_resume=False')
    resumable: DataLoader = DataLoader(
        SeededDataset(loader.dataset),  # type: ignore[arg-type]  # stands for
        batch_sampler=NumberedBatches(loader.batch_sampler, place, endless),
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
    vars(resumable).update(batch_size=loader.batch_size,
                           sampler=loader.sampler, drop_last=loader.drop_last)
    return resumable


class PlacedBatch(list):
    """A batch's indices, as its sampler gives them, and its place.

    Args:
        indices (iterable): of the samples.
        place (tuple[int, ...]): seed, epoch, number of the batch, rank.
    """

    def __init__(self, indices: Iterable, place: tuple[int, ...]):
        super().__init__(indices)
        self.place = place


class Transparent:
    """A proxy, through which the other object's attributes are read and set.

    Args:
        wrapped: the other object.
    """

    def __init__(self, wrapped):
        vars(self)['stepnet_wrapped'] = wrapped

    # isinstance asks for it. mypy knows no such property.
    @property  # type: ignore[misc]
    def __class__(self):
        return type(self.stepnet_wrapped)

    def __getattr__(self, name):
        if name == 'stepnet_wrapped':  # a copy asks before it has one
            raise AttributeError(name)
        return getattr(self.stepnet_wrapped, name)

    def __setattr__(self, name, value):
        setattr(self.stepnet_wrapped, name, value)

    def __delattr__(self, name):
        delattr(self.stepnet_wrapped, name)

    def __add__(self, other):
        return self.stepnet_wrapped + other

    def __contains__(self, item) -> bool:
        return item in self.stepnet_wrapped

    def __iter__(self):
        return iter(self.stepnet_wrapped)

    def __len__(self) -> int:
        return len(self.stepnet_wrapped)

    def __repr__(self) -> str:
        return repr(self.stepnet_wrapped)


class NumberedBatches(Transparent):
    """A batch sampler whose batches know their place.

    Args:
        batch_sampler (BatchSampler): gives lists of indices.
        place (Place): as in :func:`resumable_loader`.
        endless (bool): as there.
    """

    def __init__(self, batch_sampler, place: Place, endless: bool = False):
        super().__init__(batch_sampler)
        vars(self).update(stepnet_place=place, stepnet_endless=endless)

    def __iter__(self):
        place, rank = self.stepnet_place, get_rank()
        start, place.start = place.start, 0
        batches = (_endless if self.stepnet_endless else
                   iter)(self.stepnet_wrapped)
        for number, batch in islice(enumerate(batches), start, None):
            yield PlacedBatch(batch, (place.seed, place.epoch, number, rank))


def _endless(batch_sampler):
    set_epoch = getattr(getattr(batch_sampler, 'sampler', None), 'set_epoch',
                        None)
    for epoch in count():
        # As mmengine, whose loop calls it from the second time on.
        if epoch and set_epoch is not None:
            set_epoch(epoch)
        batch = None
        for batch in batch_sampler:
            yield batch
        if batch is None:
            raise ValueError(NO_BATCHES)


class SeededDataset(Transparent):
    """A dataset that seeds the samples of a :class:`PlacedBatch`.

    A single index gives the dataset's sample without a seed.

    Args:
        dataset (Dataset): any with indices.
    """

    def __getitem__(self, index):
        return self.stepnet_wrapped[index]

    def __getitems__(self, indices: list) -> list:
        if isinstance(indices, PlacedBatch):
            return [self._draw(index, (*indices.place, offset))
                    for offset, index in enumerate(indices)]
        return [self[index] for index in indices]

    def _draw(self, index, place: tuple[int, ...]):
        if get_worker_info() is None:
            with seeded(*place):
                return self[index]
        # The generators of a worker serve nothing else.
        seed_generators(*place)
        return self[index]

    def __reduce__(self):
        return SeededDataset, (self.stepnet_wrapped, )
