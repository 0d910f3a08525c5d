"""Every registered step-size module by itself."""
import importlib.util

import torch
from torch import Tensor

from ..launch.report import Report, Unavailable
from ..steps import StepSize, build_step
from ..steps.base import step_types
from .networks import DTYPES, precision, short
from .series import REPORT_IT

#: What some cannot do without: type -> further arguments.
ARGUMENTS = dict(TimmAttention=dict(name='eca'))
CHANNELS = 64


def check(report: Report, device: torch.device) -> None:
    """Whether each gives finite values and gradients in every precision."""
    for name in step_types():
        if name == 'TimmAttention' and not importlib.util.find_spec('timm'):
            report.skip('TimmAttention: timm is not installed')
            continue
        try:
            report.ok(f'{name}: finite in {", ".join(_try(name, device))}')
        except Exception as error:
            report.error(f'{name}: {error!r}', REPORT_IT)


def _try(name: str, device: torch.device) -> list[str]:
    """The precisions that the device has."""
    done = []
    for dtype in DTYPES:
        try:
            _run(name, device, dtype)
            done.append(short(dtype))
        except Unavailable:
            pass
    return done


def _run(name: str, device: torch.device, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    step: StepSize = build_step(
        dict(type=name, **ARGUMENTS.get(name, {})), CHANNELS).to(device)
    maps = [torch.randn(4, CHANNELS, 14, 14, device=device,
                        requires_grad=True) for _ in range(2)]
    with precision(device, dtype):
        output = step(*maps)
    output.float().square().mean().backward()
    _require_finite('output', output)
    for what, tensor in (*step.named_parameters(), ('the residual', maps[1])):
        if tensor.grad is not None:
            _require_finite(f'the gradient of {what}', tensor.grad)


def _require_finite(what: str, values: Tensor) -> None:
    if not values.isfinite().all():
        raise RuntimeError(f'{what}: expected finite values, got others')
