"""Checks what a training runs on a device: kernels, networks, steps, cost."""
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import product
from statistics import median
from typing import Any
from unittest import mock

import torch
from mmengine.registry import MODELS
from torch import Tensor, nn

from ..ops import residual_tail
from ..ops.tail_check import HAS_TRITON, check_kernels, formats_on
from ..profiling import Contestant, interleave, median_ratio
from ..steps import build_step
from ..steps.base import step_types
from ..utils.precision import float32_or_wider
from .process import REPORT_IT, attempt, judge, row

TODO = f'backbone.fused=False does without it; {REPORT_IT}'
#: The fused tail's error may be so many times that of the modules, and as
#: much more as one ReLU makes whose argument is nearly 0.
FACTOR, FLOOR = 2, .01
PLAIN, STEPNET, UNFUSED = 'plain', 'StepNet', 'StepNet, fused=False'
NETWORKS: dict[str, dict] = {
    PLAIN: dict(kind='ResNet'), STEPNET: {}, UNFUSED: dict(fused=False)}
#: Of 9 rounds the second least and the second largest ratio are a confidence
#: interval of the median; it is wrong in 4 % of all cases.
ROUNDS = 9
#: The fused tail is kept unless it is surely slower, by this factor.
NOISE = 1.02


def kernels(device: str) -> Iterator[dict]:
    """Whether every kernel agrees with the plain formulas."""
    if device == 'cuda' and not HAS_TRITON:
        yield row('warning', 'Triton is not installed, StepNet runs without '
                  'its fused tail: pip install triton makes it faster')
        return
    for dtype in dtypes(device):
        for found in check_kernels(device, [dtype]):
            yield judge(
                found.ok, f'{found.kernel}, {dtype}, {found.memory_format}: '
                + (found.reason or f'{found.difference:.2g} of the allowed '
                   'difference'), TODO)


def backbone(device: str) -> Iterator[dict]:
    """Whether StepResNet-50's fused tail is as exact as its modules."""
    exact = _run(device, torch.float64, torch.contiguous_format, fused=False)
    # Small maps are quicker to compare.
    with mock.patch.object(residual_tail, 'LEAST_ON_GPU', 0):
        for kind in product(dtypes(device), formats_on(device)):
            plain, fused = (
                [float((got - want).norm() / want.norm()) for got, want in
                 zip(_run(device, *kind, fused=fused), exact)]
                for fused in (False, True))
            yield judge(
                all(a <= FACTOR * b + FLOOR for a, b in zip(fused, plain)),
                f'{kind[0]}, {kind[1]}: off float64 by {fused[0]:.1e} (output)'
                f' and {fused[1]:.1e} (gradients), fused=False by '
                f'{plain[0]:.1e} and {plain[1]:.1e}', TODO)


def _run(device: str, dtype: torch.dtype, layout: torch.memory_format,
         fused: bool) -> tuple[Tensor, Tensor]:
    """The last map and all parameters' gradients, flat, in float64 on CPU."""
    wide = float32_or_wider(dtype)
    narrow: dict = dict(base_channels=8, stem_channels=8) if (
        device == 'cpu') else {}
    network = build_backbone(device, layout, fused=fused, **narrow).to(wide)
    for name, parameter in network.named_parameters():
        if name.endswith('bn3.weight'):  # depth multiplies rounding errors
            nn.init.constant_(parameter, .2)
    shape = (4, 3, 64, 64) if device == 'cpu' else (16, 3, 224, 224)
    images = random(*shape).to(device, wide, memory_format=layout)
    with torch.autocast(device, dtype, enabled=dtype != wide):
        output = network(images)[-1]
    direction = random(*output.shape).to(device, wide)
    (.01 * output.to(wide) * direction).sum().backward()
    return output.detach().double().cpu(), torch.cat([
        p.grad.double().flatten().cpu()
        for p in network.parameters() if p.grad is not None])


def steps(device: str) -> Iterator[dict]:
    """Whether each registered step gives finite values and gradients."""
    for name in step_types():
        yield from attempt(name, _try_step, name, device)


def _try_step(name: str, device: str) -> Iterator[dict]:
    given = dict(name='eca') if name == 'TimmAttention' else {}
    if given and not find_spec('timm'):
        yield row('skipped', 'timm is not installed')
        return
    for dtype in dtypes(device):
        step = build_step(dict(type=name, **given), 64).to(device)
        x, f = random(2, 4, 64, 14, 14).to(device)
        f.requires_grad_()
        with torch.autocast(device, dtype, enabled=dtype != x.dtype):
            output = step(x, f)
        output.float().square().mean().backward()
        # A NaN or inf of the output is one of f's gradient.
        nn.utils.clip_grad_norm_([f, *step.parameters()], 1.,
                                 error_if_nonfinite=True)
    yield row('ok', f'finite in {", ".join(map(str, dtypes(device)))}')


def cost(device: str) -> Iterator[dict]:
    """Time and memory of plain and StepNet, with and without fused tail."""
    if device == 'cpu':
        images, layout = random(2, 3, 64, 64), torch.contiguous_format
    else:
        images, layout = random(128, 3, 224, 224), torch.channels_last
    images = images.to(device, memory_format=layout)
    networks = {
        name: Contestant(
            build_backbone(device, layout, **settings), images,
            dtype=None if device == 'cpu' else dtypes(device)[1])
        for name, settings in NETWORKS.items()}
    times = interleave({name: network.seconds
                        for name, network in networks.items()}, ROUNDS)
    for name, network in networks.items():
        saved, peak = network.saved_megabytes(), network.peak_megabytes()
        yield row('ok', f'{name}: {1e3 * median(times[name]):.1f} ms, '
                  f'{median_ratio(times[name], times[PLAIN]):.3f} of plain; '
                  f'{saved:.1f} MB kept for backward, {peak:.0f} MB peak on '
                  'a GPU', seconds_of_rounds=times[name],
                  saved_megabytes=saved, peak_megabytes=peak)
    yield verdict(times[STEPNET], times[UNFUSED])


def verdict(fused: list[float], unfused: list[float]) -> dict:
    """A row: whether to keep the fused tail, from the seconds of rounds."""
    _, low, *_, high, _ = sorted(a / b for a, b in zip(fused, unfused))
    return judge(low <= NOISE, f'the fused tail takes {low:.2f} to {high:.2f} '
                 'of the time without it', 'backbone.fused=False is faster',
                 'warning')


def libraries() -> list[str]:
    """The installed libraries that have a StepResNet."""
    return [name for name in ('mmpretrain', 'mmdet') if find_spec(name)]


def build_backbone(device: str, layout: torch.memory_format,
                   kind: str = 'StepResNet', **settings: Any) -> Any:
    """A ResNet-50 in training mode, always with the same weights."""
    torch.manual_seed(0)
    network = MODELS.build(dict(
        type=f'{libraries()[0]}.{kind}', depth=50, norm_eval=False,
        frozen_stages=-1, **settings))
    network.train()  # the libraries' own returns nothing
    return network.to(device, memory_format=layout)


def random(*shape: int) -> Tensor:
    """Normal numbers, always the same."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def dtypes(device: str) -> list[torch.dtype]:
    """The dtypes of trainings: float32, then the better one of autocast."""
    if device == 'cpu':
        return [torch.float32, torch.bfloat16]
    new = torch.cuda.get_device_capability() >= (8, 0)
    return [torch.float32, *[torch.bfloat16] * new, torch.float16]
