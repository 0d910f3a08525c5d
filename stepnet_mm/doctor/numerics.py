"""Checks the numbers: kernels, networks with and without them, steps."""
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import product
from typing import Any
from unittest import mock

import torch
from mmengine.registry import MODELS
from torch import Tensor, nn

from ..ops import residual_tail
from ..ops.tail_check import HAS_TRITON, check_kernels
from ..steps import build_step
from ..steps.base import step_types
from .report import REPORT_IT, Unavailable, attempt, row

TODO = f'backbone.fused=False does without it; {REPORT_IT}'
#: The fused tail's error may be so many times that of the modules, and as
#: much more as one ReLU makes whose argument is nearly 0.
FACTOR, FLOOR = 2, .01


def kernels(device: str) -> Iterator[dict]:
    """Whether every kernel agrees with the plain formulas."""
    if device == 'cuda' and not HAS_TRITON:
        yield row('warning', 'Triton is not installed, StepNet runs without '
                  'its fused tail: pip install triton makes it faster')
        return
    for dtype, layout in kinds(device):
        results = check_kernels(device, [dtype], [layout])
        name = named(dtype, layout)
        for found in results:
            if not found.ok:
                yield row('error', f'{name}: {found.kernel}: {found.reason}: '
                          f'{TODO}')
        if all(found.ok for found in results):
            off = {found.kernel: found.difference for found in results}
            yield row('ok', f'{name}: {len(off)} kernels, at most '
                      f'{max(off.values()):.2g} of the allowed difference',
                      differences=off)


def backbone(device: str) -> Iterator[dict]:
    """Whether StepResNet-50's fused tail is as exact as its modules."""
    exact = _run(device, False, torch.float64, torch.contiguous_format)
    # Small maps are quicker to compare.
    with mock.patch.object(residual_tail, 'LEAST_ON_GPU', 0):
        for kind in kinds(device):
            yield from attempt(named(*kind), _compare, device, *kind, exact)


def _compare(device: str, dtype: torch.dtype, layout: torch.memory_format,
             exact: tuple[Tensor, Tensor]) -> Iterator[dict]:
    plain, fused = (
        [float((got - want).norm() / want.norm())
         for got, want in zip(_run(device, fused, dtype, layout), exact)]
        for fused in (False, True))
    text = (f'off float64 by {fused[0]:.1e} (output) and {fused[1]:.1e} '
            f'(gradients), fused=False by {plain[0]:.1e} and {plain[1]:.1e}')
    close = all(a <= FACTOR * b + FLOOR for a, b in zip(fused, plain))
    yield row('ok', text) if close else row('error', f'{text}: {TODO}')


def _run(device: str, fused: bool, dtype: torch.dtype,
         layout: torch.memory_format) -> tuple[Tensor, Tensor]:
    """The last map and all parameters' gradients, flat, in float64 on CPU."""
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    narrow: dict = dict(base_channels=8, stem_channels=8) if (
        device == 'cpu') else {}
    network = build_backbone(device, fused=fused, **narrow)
    for name, parameter in network.named_parameters():
        if name.endswith('bn3.weight'):  # depth multiplies rounding errors
            nn.init.constant_(parameter, .2)
    network.to(wide, memory_format=layout)
    images = make_images(device, *((4, 64) if device == 'cpu' else (16, 224)))
    with autocast(device, dtype):
        output = network(images.to(wide, memory_format=layout))[-1]
    torch.manual_seed(1)
    direction = torch.randn(output.shape).to(device, wide)
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
        raise Unavailable('timm is not installed')
    for dtype in dtypes(device):
        torch.manual_seed(0)
        step = build_step(dict(type=name, **given), 64).to(device)
        x, f = (torch.randn(4, 64, 14, 14, device=device, requires_grad=True)
                for _ in range(2))
        with autocast(device, dtype):
            output = step(x, f)
        output.float().square().mean().backward()
        for value in output, f.grad, *(p.grad for p in step.parameters()):
            if value is not None and not value.isfinite().all():
                raise RuntimeError(f'{named(dtype)}: expected finite values '
                                   'and gradients, got others')
    yield row('ok', f'finite in {", ".join(map(named, dtypes(device)))}')


def libraries() -> list[str]:
    """The installed libraries that have a StepResNet."""
    return [name for name in ('mmpretrain', 'mmdet') if find_spec(name)]


def build_backbone(device: str, kind: str = 'StepResNet', depth: int = 50,
                   **settings: Any) -> Any:
    """A backbone in training mode, always with the same weights."""
    torch.manual_seed(0)
    network = MODELS.build(dict(
        type=f'{libraries()[0]}.{kind}', depth=depth, norm_eval=False,
        frozen_stages=-1, **settings)).to(device)
    network.train()  # the libraries' own returns nothing
    return network


def make_images(device: str, number: int, edge: int) -> Tensor:
    """Random images, (number, 3, edge, edge), always the same."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn(
        number, 3, edge, edge, generator=generator).to(device)


def dtypes(device: str) -> list[torch.dtype]:
    """The dtypes of trainings: float32, then the better one of autocast."""
    if device == 'cpu':
        return [torch.float32, torch.bfloat16]
    new = torch.cuda.get_device_capability() >= (8, 0)
    return [torch.float32, *[torch.bfloat16] * new, torch.float16]


def kinds(device: str) -> Iterator[tuple[torch.dtype, torch.memory_format]]:
    """Dtypes and layouts of the maps that there are kernels for."""
    layouts = [torch.contiguous_format, torch.channels_last]
    return product(dtypes(device), layouts[:1 + (device == 'cuda')])


def autocast(device: str, dtype: torch.dtype) -> torch.autocast:
    """Autocast to a half dtype; none for float32 and wider."""
    half = dtype in (torch.bfloat16, torch.float16)
    return torch.autocast(device, dtype if half else None, enabled=half)


def named(*kind: torch.dtype | torch.memory_format) -> str:
    """torch.float16, torch.channels_last -> 'float16 channels_last'."""
    return ' '.join(str(value).rpartition('.')[2].removesuffix('_format')
                    for value in kind)
