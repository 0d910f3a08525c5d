"""Time and memory of plain, SE and StepNet, side by side."""
from collections.abc import Iterator
from statistics import median

import torch

from ..profiling import Contestant, interleave, median_ratio, summed
from .numerics import build_backbone, dtypes, make_images
from .report import Unavailable, row

PLAIN, STEPNET, UNFUSED = 'plain', 'StepNet', 'StepNet, fused=False'
NETWORKS: dict[str, dict] = {
    PLAIN: dict(kind='ResNet'), 'SE': dict(step='SEAttention'),
    STEPNET: {}, UNFUSED: dict(fused=False)}
#: Of 9 rounds the second least and the second largest ratio are a confidence
#: interval of the median; it is wrong in 4 % of all cases.
ROUNDS = 9
#: Images of a batch, and their edge in px.
SIZES = dict(cuda=(128, 224), cpu=(2, 64))
#: The fused tail is kept unless it is surely slower, by this factor.
NOISE = 1.02


def cost(device: str) -> Iterator[dict]:
    """Compare the networks, and the fused tail with ``fused=False``."""
    networks = {name: contestant(name, device) for name in NETWORKS}
    times = race(networks)
    for name, network in networks.items():
        found = dict(
            milliseconds=1e3 * median(times[name]),
            of_plain=median_ratio(times[name], times[PLAIN]),
            saved_megabytes=network.saved_megabytes(),
            peak_megabytes=network.peak_megabytes())
        text = '{}: {milliseconds:.1f} ms, {of_plain:.3f} of plain; ' \
            '{saved_megabytes:.1f} MB kept for backward'
        if device == 'cuda':
            text += ', {peak_megabytes:.0f} MB peak'
        yield row('ok', text.format(name, **found),
                  seconds_of_rounds=times[name], **found)
    yield verdict(times, network.images.shape)


def compiled(device: str) -> Iterator[dict]:
    """The same verdict under torch.compile, on a GPU."""
    if device == 'cpu':
        raise Unavailable('a compiler takes minutes on a CPU: tools/benchmarks'
                          '/step_cost.py --compiled plain stepnet takes them')
    # The trainings before have set both.
    torch.use_deterministic_algorithms(False)
    torch.backends.cudnn.deterministic = False
    try:
        torch.compile(lambda x: x.square() + 1)(torch.ones(2, device=device))
    except Exception as error:
        reason = f'{error}'.strip().partition('\n')[0]
        raise Unavailable(f'torch.compile does not work here ({reason}); '
                          'eager networks do without') from error
    yield compare_compiled(device)


def compare_compiled(device: str) -> dict:
    """The verdict on compiled networks."""
    networks = {name: contestant(name, device)
                for name in (PLAIN, STEPNET, UNFUSED)}
    for network in networks.values():
        network.call = summed(torch.compile(network.model))
    return verdict(race(networks), network.images.shape)


def contestant(name: str, device: str) -> Contestant:
    """A network: half precision, channels_last on a GPU, float32 on a CPU."""
    model = build_backbone(device, **NETWORKS[name])
    images = make_images(device, *SIZES[device])
    if device == 'cpu':
        return Contestant(model, images)
    return Contestant(
        model.to(memory_format=torch.channels_last),
        images.to(memory_format=torch.channels_last),
        dtype=dtypes(device)[1])


def race(networks: dict[str, Contestant]) -> dict[str, list[float]]:
    """The seconds of each round, all networks in turn."""
    return interleave({name: network.seconds
                       for name, network in networks.items()}, ROUNDS)


def verdict(times: dict[str, list[float]], shape: torch.Size) -> dict:
    """A row: whether to keep the fused tail, with a confidence interval.

    Args:
        times (dict[str, list[float]]): of :func:`race`.
        shape (torch.Size): of the images, (N, C, H, W).
    """
    plain, fused, modules = (times[key] for key in (PLAIN, STEPNET, UNFUSED))
    _, low, *_, high, _ = sorted(a / b for a, b in zip(fused, modules))
    text = (f'fused tail {median_ratio(fused, plain):.2f} of plain, without '
            f'it {median_ratio(modules, plain):.2f}; {low:.2f} to {high:.2f} '
            f'of the time without it in {len(fused)} rounds (batch '
            f'{shape[0]}, {shape[-1]} px): ')
    if low > NOISE:
        return row('warning', f'{text}slower: switch it off: '
                   'backbone.fused=False')
    return row('ok', text + (
        'faster, keep it' if high < 1 else 'no sure difference, keep it; a '
        'machine without other work tells more'))
