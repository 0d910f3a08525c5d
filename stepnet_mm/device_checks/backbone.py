"""StepResNet-50 with its fused tail and without, forward and backward."""
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..launch.report import Report, Unavailable
from ..ops import ResidualTail
from .networks import (
    DTYPES,
    LAYOUTS,
    build_backbone,
    make_images,
    precision,
    short,
)
from .series import REPORT_IT

#: The fused tail may be so many times as far off float64 as the modules are,
#: and as much more as one ReLU makes whose argument is nearly 0.
FACTOR, FLOOR = 2, .01


class Result(NamedTuple):
    """A forward and a backward pass, in float64 on the CPU."""

    output: Tensor  # the last map
    gradient: Tensor  # of all parameters, one behind another


def check(report: Report, device: torch.device) -> None:
    """Whether the fused tail is as exact as the modules it stands for."""
    exact = _run(device, False, torch.float64, torch.contiguous_format)
    for dtype in DTYPES:
        for layout in LAYOUTS:
            kind = f'{short(dtype)} {short(layout)}'
            try:
                _compare(report, device, dtype, layout, exact)
            except Unavailable as error:
                report.skip(f'{kind}: {error}')
            except Exception as error:
                report.error(f'{kind}: {error!r}', REPORT_IT)


def _compare(report: Report, device: torch.device, dtype: torch.dtype,
             layout: torch.memory_format, exact: Result) -> None:
    plain = _errors(_run(device, False, dtype, layout), exact)
    fused = _errors(_run(device, True, dtype, layout), exact)
    what = (f'{short(dtype)} {short(layout)}: off float64 by {fused[0]:.1e} '
            f'(output) and {fused[1]:.1e} (gradients), fused=False by '
            f'{plain[0]:.1e} and {plain[1]:.1e}')
    if not all(a <= FACTOR * b + FLOOR for a, b in zip(fused, plain)):
        report.error(what, REPORT_IT)
    elif _has_kernels(device, dtype, layout):
        report.ok(what)
    elif device.type == 'cpu' and layout == torch.channels_last:
        report.ok(f'{what}; there is no fused tail for these maps on a CPU')
    else:
        report.warn(f'{what}; without the fused tail',
                    'the lines of the kernels say why')


def _run(device: torch.device, fused: bool, dtype: torch.dtype,
         layout: torch.memory_format) -> Result:
    number, edge = (4, 64) if device.type == 'cpu' else (16, 224)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    network = _tame(build_backbone(device, fused=fused)).to(
        wide, memory_format=layout)
    images = make_images(device, number, edge).to(
        wide, memory_format=layout)
    with precision(device, dtype):
        output = network(images)[-1]
    torch.manual_seed(1)
    direction = torch.randn(output.shape).to(device, wide)
    (.01 * output.to(wide) * direction).sum().backward()
    return Result(output.detach().double().cpu(), _gradient(network))


def _tame(network: Any) -> Any:
    """Scale the residuals down: a deep network multiplies rounding errors."""
    for name, parameter in network.named_parameters():
        if name.endswith('bn3.weight'):
            nn.init.constant_(parameter, .2)
    return network


def _gradient(network: nn.Module) -> Tensor:
    return torch.cat([p.grad.double().flatten().cpu()
                      for p in network.parameters() if p.grad is not None])


def _errors(got: Result, exact: Result) -> list[float]:
    """Distances over the norm of the exact."""
    return [float((a - b).norm() / b.norm()) for a, b in zip(got, exact)]


def _has_kernels(device: torch.device, dtype: torch.dtype,
                 layout: torch.memory_format) -> bool:
    image = torch.ones(2, 8, 4, 4, device=device, dtype=dtype).to(
        memory_format=layout)
    return ResidualTail.supports(image, image)
