"""A fixed set of samples, measured in eval mode without side effects."""
from collections.abc import Sized
from contextlib import contextmanager
from typing import cast

import torch
from mmengine import dist
from torch.utils.data import DataLoader, Subset

from ..utils.hook_helpers import eval_mode
from ..utils.job_signals import ignore_in_workers
from ..utils.random_state import (
    get_random_state,
    seed_generators,
    set_random_state,
)
from .trajectory_recorder import TrajectoryRecorder


class Probe:
    """The same samples at every measurement, spread over a dataset.

    The model's weights, statistics and modes and all random generators are
    as before afterwards. Meanwhile all ranks have the first one's statistics.

    Args:
        loader (DataLoader): names the dataset, the batch size and the
            collate function; its sampler is not used.
        num_samples (int): of all ranks together; all of a smaller dataset.
    """

    def __init__(self, loader: DataLoader, num_samples: int):
        size = len(cast(Sized, loader.dataset))
        self.indices = spread_indices(size, num_samples)
        rank, world = dist.get_rank(), dist.get_world_size()
        self.loader = subset_loader(loader, self.indices[rank::world])
        self.first = subset_loader(loader, self.indices[:1], 1)

    @torch.no_grad()
    def check(self, model, recorder: TrajectoryRecorder) -> None:
        """Run one sample, on every rank the same, as an early test.

        Raises:
            ValueError: if the model cannot be measured.
        """
        with restored_state(model), recorder:
            for sample in self.first:
                try:
                    run_features(model, sample, recorder.blocks)
                except (AttributeError, KeyError, TypeError) as error:
                    raise ValueError(
                        'custom_hooks.TNSHook.probe: expected samples that '
                        "run through the model with mode='tensor', got "
                        f'{type(error).__name__}: {error}; leave probe out '
                        'to measure the training forward') from error
        recorder.check()

    @torch.no_grad()
    def measure(self, model, recorder: TrajectoryRecorder) -> None:
        """Run this rank's samples through a model, under a recorder."""
        self.loader.generator.manual_seed(0)
        with restored_state(model), _first_rank_buffers(model), recorder:
            for batch in self.loader:
                run_features(model, batch, recorder.blocks)


@contextmanager
def _first_rank_buffers(model):
    """The first rank's buffers on every rank; each one's own afterwards.

    The averages of a plain BatchNorm differ by rank.
    """
    buffers = [*model.buffers()] if dist.get_world_size() > 1 else []
    own = [buffer.clone() for buffer in buffers]
    try:
        for buffer in buffers:
            dist.broadcast(buffer)
        yield
    finally:
        for buffer, value in zip(buffers, own):
            buffer.copy_(value)


def spread_indices(size: int, number: int | None = None) -> list[int]:
    """Indices of ``number`` samples, evenly over a dataset, in order.

    All for None, or where there are fewer. The first ones would not do, as
    many datasets are sorted by class.

    Raises:
        ValueError: if the number is not positive or the dataset is empty.
    """
    number = size if number is None else number
    if not isinstance(number, int) or number < 1 or not size:
        raise ValueError(
            'num_samples: expected a positive number of samples of a dataset '
            f'that is not empty, got {number!r} of {size}')
    number = min(size, number)
    return [i * size // number for i in range(number)]


def sample_inputs(model, loader: DataLoader, number: int,
                  first: int | None = None) -> torch.Tensor:
    """Samples spread over a loader's dataset, as a model's network takes them.

    ``first`` is the index of a sample that comes first.
    """
    indices = spread_indices(len(cast(Sized, loader.dataset)), number)
    if first is not None:
        indices = [first, *[i for i in indices if i != first]][:len(indices)]
    samples = subset_loader(loader, indices, len(indices))
    samples.generator.manual_seed(0)
    with restored_state(model):
        return network_inputs(model, next(iter(samples)))


def subset_loader(loader: DataLoader, indices: list,
                  batch_size: int | None = None) -> DataLoader:
    """A loader of some samples of another's dataset, in the given order.

    Its workers ignore the signals that tell a job to stop.
    """
    batch_size = batch_size or loader.batch_size or getattr(
        loader.batch_sampler, 'batch_size', 1)
    part = DataLoader(
        Subset(loader.dataset, indices), batch_size=batch_size,
        num_workers=loader.num_workers, collate_fn=loader.collate_fn,
        pin_memory=loader.pin_memory, generator=torch.Generator())
    ignore_in_workers(part)
    return part


def run_features(model, batch, blocks: list) -> None:
    """Run a model of the mm libraries on a batch, without its heads.

    Of several backbones the one of ``blocks``, which are names, runs. A model
    with neither backbone nor ``extract_feat`` gets all of the batch.
    """
    if 'backbone.' in blocks[0] or hasattr(model, 'extract_feat'):
        return run_backbone(model, network_inputs(model, batch), blocks)
    data = model.data_preprocessor(batch, False)
    args, kwargs = ((), data) if isinstance(data, dict) else (data, {})
    model(*args, **kwargs, mode='tensor')


def network_inputs(model, batch) -> torch.Tensor:
    """A batch of a model's data loader as its network takes it, (N, ...).

    The batch is a dict with ``inputs``, or a list or tuple with these first.
    """
    data = model.data_preprocessor(batch, False)
    inputs = data['inputs'] if isinstance(data, dict) else data[0]
    # Without a preprocessor that pads they are a list.
    return (inputs if isinstance(inputs, torch.Tensor)
            else torch.stack([*inputs]))


def run_backbone(model, inputs, blocks: list) -> None:
    """Run the backbone of ``blocks``, or the model's feature extraction."""
    before, backbone, _ = blocks[0].partition('backbone.')
    if backbone:
        model.get_submodule(f'{before}backbone')(inputs)
    elif hasattr(model, 'extract_feat'):
        model.extract_feat(inputs)
    else:
        model(inputs, mode='tensor')


@contextmanager
def restored_state(model):
    """Eval mode and seeded generators; modes and states back afterwards.

    With the seed a pipeline that draws at random draws the same every time.
    """
    before = get_random_state()
    try:
        with eval_mode(model):
            seed_generators(0)
            torch.cuda.manual_seed(0)
            yield
    finally:
        set_random_state(before)
