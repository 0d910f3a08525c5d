"""Time and memory of plain and StepNet, side by side."""
from collections.abc import Iterator
from statistics import median

import torch

from ..profiling import Contestant, interleave, median_ratio
from .numerics import build_backbone, dtypes, make_images
from .report import row

PLAIN, STEPNET, UNFUSED = 'plain', 'StepNet', 'StepNet, fused=False'
NETWORKS: dict[str, dict] = {
    PLAIN: dict(kind='ResNet'), STEPNET: {}, UNFUSED: dict(fused=False)}
#: Of 9 rounds the second least and the second largest ratio are a confidence
#: interval of the median; it is wrong in 4 % of all cases.
ROUNDS = 9
#: The fused tail is kept unless it is surely slower, by this factor.
NOISE = 1.02


def cost(device: str) -> Iterator[dict]:
    """Compare the networks, and the fused tail with ``fused=False``."""
    networks = {name: contestant(settings, device)
                for name, settings in NETWORKS.items()}
    times = interleave({name: network.seconds
                        for name, network in networks.items()}, ROUNDS)
    for name, network in networks.items():
        milliseconds, of_plain = 1e3 * median(times[name]), median_ratio(
            times[name], times[PLAIN])
        saved, peak = network.saved_megabytes(), network.peak_megabytes()
        text = (f'{name}: {milliseconds:.1f} ms, {of_plain:.3f} of plain; '
                f'{saved:.1f} MB kept for backward')
        if device == 'cuda':
            text += f', {peak:.0f} MB peak'
        yield row('ok', text, seconds_of_rounds=times[name],
                  milliseconds=milliseconds, of_plain=of_plain,
                  saved_megabytes=saved, peak_megabytes=peak)
    yield verdict(times, networks[PLAIN].images.shape)


def contestant(settings: dict, device: str) -> Contestant:
    """A network: half precision, channels_last on a GPU, float32 on a CPU."""
    model = build_backbone(device, **settings)
    if device == 'cpu':
        return Contestant(model, make_images(device, 4, 96))
    layout = torch.channels_last
    return Contestant(
        model.to(memory_format=layout),
        make_images(device, 128, 224).to(memory_format=layout),
        dtype=dtypes(device)[1])


def verdict(times: dict[str, list[float]], shape: torch.Size) -> dict:
    """A row: whether to keep the fused tail, with a confidence interval.

    Args:
        times (dict[str, list[float]]): the seconds of each round.
        shape (torch.Size): of the images, (N, C, H, W).
    """
    _, low, *_, high, _ = sorted(
        a / b for a, b in zip(times[STEPNET], times[UNFUSED]))
    text = (f'the fused tail takes {low:.2f} to {high:.2f} of the time '
            f'without it (batch {shape[0]}, {shape[-1]} px): ')
    if low > NOISE:
        return row('warning', f'{text}switch it off: backbone.fused=False')
    return row('ok', text + (
        'keep it' if high < 1 else 'no sure difference, keep it'))
