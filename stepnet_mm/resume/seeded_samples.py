"""The random generators of each sample, in a worker or in the training."""
from collections.abc import Iterable

from torch.utils.data import get_worker_info

from ..utils.random_state import seed_generators, seeded


class PlacedBatch(list):
    """A batch's indices, as its sampler gives them, and its place.

    Args:
        indices (iterable): of the samples.
        place (tuple[int, ...]): seed, epoch, number of the batch, rank.
    """

    def __init__(self, indices: Iterable, place: tuple[int, ...]):
        super().__init__(indices)
        self.place = place


class SeededSamples:
    """A ``__getitems__`` that seeds the samples of a :class:`PlacedBatch`.

    Other indices give the dataset's samples without a seed.

    Args:
        dataset (Dataset): any with indices.
    """

    def __init__(self, dataset):
        self.dataset = dataset

    def __getattr__(self, name):  # for a worker_init_fn
        if name == 'dataset' or name.startswith('__'):
            raise AttributeError(name)
        return getattr(self.dataset, name)

    def __getitems__(self, indices: list) -> list:
        """The samples of a batch."""
        if not isinstance(indices, PlacedBatch):
            return [self.dataset[index] for index in indices]
        samples = []
        for offset, index in enumerate(indices):
            place = (*indices.place, offset)
            if get_worker_info():  # its generators serve nothing else
                seed_generators(*place)
                samples.append(self.dataset[index])
            else:
                with seeded(*place):
                    samples.append(self.dataset[index])
        return samples
