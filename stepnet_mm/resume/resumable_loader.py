"""A data loader that can start at any batch, with seeded samples."""
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice

import torch
from mmengine.dist import get_rank
from torch.utils.data import DataLoader, IterableDataset

from .seeded_samples import PlacedBatch, SeededSamples

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
        DataLoader: attributes of the original batch sampler are read and set
        through its own.

    Raises:
        ValueError: if the samples have no index.
    """
    if loader.batch_sampler is None or isinstance(loader.dataset,
                                                  IterableDataset):
        raise ValueError(
            'train_dataloader: expected batches of indexed samples, whose '
            'place can be found again, got a dataset without indices or '
            'batch_size=None; set exact_resume=False')
    resumable = copy.copy(loader)
    vars(resumable).update(  # torch forbids to set some of them
        in_order=True,
        batch_sampler=NumberedBatches(loader.batch_sampler, place, endless),
        # A loader without one draws from the training's generator.
        generator=torch.Generator(),
        _iterator=None)
    resumable.__class__ = _Loader
    return resumable


class _Loader(DataLoader):
    """Its iterators alone see :class:`SeededSamples`."""

    def _get_iterator(self):
        loader = copy.copy(self)
        vars(loader)['dataset'] = SeededSamples(self.dataset)
        return DataLoader._get_iterator(loader)


class NumberedBatches:
    """A batch sampler whose batches know their place.

    Hooks read and set the attributes of the original through it.

    Args:
        batch_sampler (BatchSampler): gives lists of indices.
        place (Place): as in :func:`resumable_loader`.
        endless (bool): as there.
    """

    def __init__(self, batch_sampler, place: Place, endless: bool = False):
        vars(self).update(stepnet_batches=batch_sampler, stepnet_place=place,
                          stepnet_endless=endless)

    # isinstance asks for it. mypy knows no such property.
    @property  # type: ignore[misc]
    def __class__(self):
        return type(self.stepnet_batches)

    def __getattr__(self, name):
        if name == 'stepnet_batches':  # a copy asks before it has one
            raise AttributeError(name)
        return getattr(self.stepnet_batches, name)

    def __setattr__(self, name, value):
        setattr(self.stepnet_batches, name, value)

    def __len__(self) -> int:
        return len(self.stepnet_batches)

    def __iter__(self) -> Iterator[PlacedBatch]:
        place, rank = self.stepnet_place, get_rank()
        start, place.start = place.start, 0
        batches = self.stepnet_batches
        if self.stepnet_endless:
            batches = _endless(batches)
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
