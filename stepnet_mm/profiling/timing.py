"""Time and memory of networks, in turn."""
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.utils.benchmark import timer

#: Runs before the timed ones: caches, thread pools, cuDNN's choices.
WARM_RUNS = 2
Name = TypeVar('Name')


class Contestant:
    """A network that runs on images, to be timed in turn with others.

    Args:
        model (nn.Module): the network.
        images (Tensor): (N, C, H, W), on its device.
        call (callable, optional): a function of the images, whose result
            a training differentiates. Left out, it is the sum of the
            network's last map.
        dtype (torch.dtype, optional): of autocast.
    """

    def __init__(self, model: nn.Module, images: Tensor,
                 call: Callable | None = None,
                 dtype: torch.dtype | None = None):
        self.model, self.images, self.dtype = model, images, dtype
        self.call = call or summed(model)

    def seconds(self, phase: str = 'train') -> float:
        """How long ``'train'`` or ``'infer'`` takes, on a GPU too."""
        self.model.train(phase == 'train')
        self.model.zero_grad(set_to_none=True)
        with torch.cuda.device_of(self.images):
            start = timer()  # waits for the device
            getattr(self, phase)()
            return timer() - start

    def train(self) -> None:
        """A forward and a backward pass."""
        self._forward().backward()

    @torch.no_grad()
    def infer(self) -> None:
        """A forward pass without gradients."""
        self._forward()

    def saved_megabytes(self) -> float:
        """The memory that autograd keeps for the backward pass."""
        self.model.train()
        with count_saved(self.model) as found:
            self.train()
        return found['bytes'] / 1e6

    def peak_megabytes(self) -> float:
        """A GPU's peak above the memory in use before; 0 on a CPU."""
        if not self.images.is_cuda:
            return 0.
        self.model.zero_grad(set_to_none=True)
        device = self.images.device
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        self.train()
        return (peak_bytes(device) - before) / 1e6

    def _forward(self) -> Any:
        with torch.autocast(self.images.device.type, self.dtype,
                            enabled=self.dtype is not None):
            return self.call(self.images)


def peak_bytes(device: torch.device) -> int:
    """A GPU's peak of tensors, or the peak resident set of this process.

    The resident set is not getrusage's, which a process takes over from the
    process that started it. 0 where the system is not Linux.
    """
    if device.type == 'cuda':
        return torch.cuda.max_memory_allocated(device)
    status = Path('/proc/self/status')
    if not status.exists():  # not Linux
        return 0
    return 1024 * int(
        status.read_text().partition('VmHWM:')[2].split()[0])


def summed(network: Callable) -> Callable[[Tensor], Tensor]:
    """The network's last map, summed up."""
    def call(images: Tensor) -> Tensor:
        out = network(images)
        return (out[-1] if isinstance(out, tuple) else out).sum()

    return call


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
