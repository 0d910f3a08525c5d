"""Latency and peak memory of a network."""
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from .forward import Forward

#: Runs before the timed ones: caches, thread pools, cuDNN's choices.
WARM_RUNS = 2
Name = TypeVar('Name')


def measure(forward: Forward, images: Tensor, runs: int,
            train: bool = False) -> dict:
    """Latency of a forward pass, or of the loss and its backward pass.

    Args:
        forward (Forward): the model.
        images (Tensor): (N, C, H, W), on the model's device.
        runs (int): how many are timed, after the warm ones.
        train (bool): whether the loss and its backward pass are timed; the
            model is in training mode then. Defaults to False.

    Returns:
        dict: ``median_ms`` and ``iqr_ms``, the interquartile range, and what
        was timed on which device.

    Raises:
        ValueError: if the model does not take images of this size.
    """
    forward.check(images)
    run = (_train_run if train else _forward_run)(forward, images)
    low, median, high = np.percentile(
        _time_runs(run, runs, images.device), [25, 50, 75])
    return dict(
        timed='loss and backward' if train else 'forward',
        median_ms=median,
        iqr_ms=high - low,
        runs=runs,
        warm_runs=WARM_RUNS,
        input_shape=list(images.shape),
        dtype=str(images.dtype).rpartition('.')[2],
        device=_device_name(images.device),
        threads=torch.get_num_threads(),
        torch=torch.__version__)


def peak_memory(device: torch.device) -> int:
    """Bytes: of CUDA tensors, or the resident set of this process.

    0 where the system does not tell it, as on Windows.
    """
    if device.type == 'cuda':
        return torch.cuda.max_memory_allocated(device)
    try:
        import resource
    except ModuleNotFoundError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def seconds_of(run: Callable[[], object], device: torch.device) -> float:
    """How long a run takes, with all that it started on the device."""
    synchronize(device)
    start = time.perf_counter()
    run()
    synchronize(device)
    return time.perf_counter() - start


def interleave(clocks: Mapping[Name, Callable[[], float]], rounds: int,
               warm_up: int = WARM_RUNS) -> dict[Name, list[float]]:
    """Run all in turn in every round: a drift of the machine hits all alike.

    Args:
        clocks (mapping): functions that run something and return its seconds.
        rounds (int): how many count.
        warm_up (int): rounds before them.

    Returns:
        dict: the seconds of every counted round.
    """
    times: dict[Name, list[float]] = {name: [] for name in clocks}
    for i in range(warm_up + rounds):
        for name, clock in clocks.items():
            seconds = clock()
            if i >= warm_up:
                times[name].append(seconds)
    return times


def median_ratio(taken: Sequence[float],
                 reference: Sequence[float]) -> float:
    """Median of the rounds' ratios of two results of :func:`interleave`."""
    return median(a / b for a, b in zip(taken, reference))


@contextmanager
def count_saved(model: nn.Module) -> Iterator[dict[str, int]]:
    """Bytes that autograd saves inside, each storage once.

    Yields:
        dict: has ``bytes`` when the block has ended; without parameters and
        buffers.
    """
    own = {t.untyped_storage().data_ptr()
           for t in (*model.parameters(), *model.buffers())}
    saved: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    found: dict[str, int] = {}
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        yield found
    found['bytes'] = sum(saved.values())


def synchronize(device: torch.device) -> None:
    """Wait for all that was started on a device."""
    if device.type == 'cuda':
        torch.cuda.synchronize(device)


def _forward_run(forward: Forward, images: Tensor) -> Callable[[], object]:
    return torch.no_grad()(lambda: forward(images))


def _train_run(forward: Forward, images: Tensor) -> Callable[[], object]:
    model: Any = forward.model.train()

    def run():
        model.zero_grad(set_to_none=True)
        losses = model(images, forward.samples, mode='loss')
        model.parse_losses(losses)[0].backward()

    return run


def _time_runs(run: Callable[[], object], number: int,
               device: torch.device) -> list[float]:
    """Milliseconds of each of ``number`` runs, after the warm ones."""
    times = [1e3 * seconds_of(run, device)
             for _ in range(WARM_RUNS + number)]
    return times[WARM_RUNS:]


def _device_name(device: torch.device) -> str:
    if device.type == 'cuda':
        return torch.cuda.get_device_name(device)
    return str(device)
