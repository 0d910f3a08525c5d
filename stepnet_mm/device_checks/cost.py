"""Time and memory of plain, SE and StepNet, side by side."""
from collections.abc import Callable
from functools import partial
from statistics import median

import torch
from torch import Tensor, nn

from ..launch.report import Report
from ..profiling import count_saved, interleave, median_ratio, seconds_of
from .networks import build_backbone, make_images, precision

NETWORKS: dict[str, dict] = {
    'plain': dict(kind='ResNet'),
    'SE': dict(step='SEAttention'),
    'StepNet': {},
    'StepNet, fused=False': dict(fused=False),
}
#: Nine: the median lies between the second least and the second largest of
#: them, wrong in 4 % of all cases.
ROUNDS = 9
#: The fused tail is kept unless it surely takes more of the modules' time.
NOISE = 1.02


class Contestant:
    """A network that trains on random images.

    Args:
        name (str): a key of ``NETWORKS``.
        device (torch.device): where; bfloat16 or float16, channels_last on a
            GPU, float32 on a CPU.
        compiled (bool): under ``torch.compile``.
    """

    def __init__(self, name: str, device: torch.device,
                 compiled: bool = False):
        gpu = device.type == 'cuda'
        layout = torch.channels_last if gpu else torch.contiguous_format
        self.device, self.dtype = device, best_dtype(device)
        self.model: nn.Module = build_backbone(
            device, narrow=False, **NETWORKS[name]).to(memory_format=layout)
        self.call: Callable = (
            torch.compile(self.model) if compiled else self.model)
        self.images: Tensor = make_images(
            device, *sizes(device)).to(memory_format=layout)

    def seconds(self) -> float:
        """Of a forward and a backward pass."""
        self.model.zero_grad(set_to_none=True)
        return seconds_of(self._run, self.device)

    def saved_megabytes(self) -> float:
        """What autograd keeps for the backward pass."""
        with count_saved(self.model) as found:
            self._run()
        return found['bytes'] / 1e6

    def peak_megabytes(self) -> float:
        """The GPU's peak above what was there before; 0 on a CPU."""
        if self.device.type == 'cpu':
            return 0.
        self.model.zero_grad(set_to_none=True)
        before = torch.cuda.memory_allocated(self.device)
        torch.cuda.reset_peak_memory_stats(self.device)
        self._run()
        return (torch.cuda.max_memory_allocated(self.device) - before) / 1e6

    def _run(self) -> None:
        with precision(self.device, self.dtype):
            output = self.call(self.images)
        output[-1].float().sum().backward()


def check(report: Report, device: torch.device) -> None:
    """Compare the four networks, and say what the fused tail is worth."""
    networks = {name: Contestant(name, device) for name in NETWORKS}
    times = race(networks)
    of_plain = {name: median_ratio(taken, times['plain'])
                for name, taken in times.items()}
    for name, network in networks.items():
        milliseconds = 1e3 * median(times[name])
        saved, peak = network.saved_megabytes(), network.peak_megabytes()
        report.ok(
            f'{name}: {milliseconds:.1f} ms, {of_plain[name]:.3f} of plain; '
            f'{saved:.1f} MB kept for backward'
            + (f', {peak:.0f} MB peak' if peak else ''),
            milliseconds=milliseconds, of_plain=of_plain[name],
            saved_megabytes=saved, peak_megabytes=peak,
            seconds_of_rounds=times[name])
    add_verdict(report, times, sizes(device))


def best_dtype(device: torch.device) -> torch.dtype:
    """What a network is mostly trained in on a device."""
    if device.type == 'cpu':
        return torch.float32
    new = torch.cuda.get_device_capability(device) >= (8, 0)
    return torch.bfloat16 if new else torch.float16


def race(networks: dict[str, Contestant]) -> dict[str, list[float]]:
    """The seconds of each round, all networks in turn."""
    return interleave({name: partial(Contestant.seconds, network)
                       for name, network in networks.items()}, ROUNDS)


def sizes(device: torch.device) -> tuple[int, int]:
    """Images of a batch, and their edge in px."""
    return (32, 224) if device.type == 'cuda' else (2, 96)


def add_verdict(report: Report, times: dict[str, list[float]],
                batch: tuple[int, int]) -> None:
    """Say whether to keep the fused tail, and how sure that is.

    Args:
        report (Report): gets the row.
        times (dict[str, list[float]]): of :func:`race`.
        batch (tuple[int, int]): of :func:`sizes`.
    """
    plain, fused, modules = [
        times[name] for name in ('plain', 'StepNet', 'StepNet, fused=False')]
    low, high = _median_range([a / b for a, b in zip(fused, modules)])
    what = (f'fused tail {median_ratio(fused, plain):.2f} of plain, without '
            f'it {median_ratio(modules, plain):.2f}; {low:.2f} to {high:.2f} '
            f'of the time without it in {len(fused)} rounds (batch '
            f'{batch[0]}, {batch[1]} px)')
    if low > NOISE:
        report.warn(f'{what}: slower', 'switch it off: backbone.fused=False')
    elif high < 1:
        report.ok(f'{what}: faster, keep it')
    else:
        report.ok(f'{what}: no sure difference, keep it; a machine without '
                  'other work tells more')


def _median_range(ratios: list[float]) -> tuple[float, float]:
    """Where the median of more rounds would most probably lie."""
    _, low, *_ = ordered = sorted(ratios)
    return low, ordered[-2]
