"""Chooses the fused tail's kernels for a device, and checks them first.

A compiler, a driver or a GPU that nobody has tried may give wrong numbers
without an error. So the kernels are compared with the plain formulas, taken
in float64, before their first use on each device, dtype and memory format:
on channels that are no power of two, on a single position, on a channel
with a large mean, and with a NaN and an inf in every map.
"""
import importlib.util
import warnings
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import NamedTuple

import torch
from torch import Tensor

from ..utils.compilation import uncompiled
from ..utils.precision import float32_or_wider
from . import tail_cpu, tail_reference
from .tail_reference import Gradients, Moments, Norm

HAS_TRITON = importlib.util.find_spec('triton') is not None
#: Kernels, and how many of their results are maps; these come first.
KERNELS = dict(measure=0, output=1, step_gradient=1, input_gradients=2)
DTYPES = torch.float32, torch.bfloat16, torch.float16
#: The memory formats that a device has kernels for.
FORMATS = dict(
    cpu=[torch.contiguous_format],
    cuda=[torch.contiguous_format, torch.channels_last])
#: In either memory format the channels of the first take several programs of
#: the Triton kernels, the last of them partly filled.
SHAPES = [(2, 70, 7, 9), (3, 70, 1, 1)]
#: A sum takes several programs, and each of them several tiles.
LARGE = 200, 5, 65, 65
MEAN = 1000
#: How far sums and maps may be off, relative to 1 + the largest value of a
#: channel; maps in half precision by four of their steps.
TABLE_BOUND, MAP_BOUND = 1e-3, 1e-5


class KernelCheck(NamedTuple):
    """The result of the check of one kernel."""
    kernel: str  # one of KERNELS
    dtype: torch.dtype
    memory_format: torch.memory_format
    ok: bool  # whether it may be used
    difference: float  # the largest, over the largest allowed one, or NaN
    reason: str  # why it may not be used


def check_kernels(device: str | torch.device,
                  dtypes: Iterable[torch.dtype] = DTYPES
                  ) -> list[KernelCheck]:
    """Check every kernel that a device would use; raises nothing."""
    device = torch.device(device)
    return [result for dtype in dtypes
            for memory_format in FORMATS[device.type]
            for result in _check(device, dtype, memory_format)]


def usable_kernels(device: torch.device, dtype: torch.dtype,
                   memory_format: torch.memory_format) -> ModuleType | None:
    """The kernels, once they are checked; None if they may not be used.

    The first call of a process for these arguments checks, and warns if a
    kernel fails. There are none without Triton or for float64 on a GPU, and
    none yet if that first call is captured in a CUDA graph.
    """
    if device.type == 'cuda' and not (HAS_TRITON and dtype != torch.float64):
        return None
    key = device, dtype, memory_format
    if key not in _checked:
        if device.type == 'cuda' and torch.cuda.is_current_stream_capturing():
            return None
        failed = '; '.join(f'{r.kernel}: {r.reason}'
                           for r in uncompiled(_check)(*key) if not r.ok)
        _checked[key] = None if failed else _module(device)
        if failed:
            warnings.warn(
                "backbone.fused: expected the fused tail's kernels to give "
                f'what the plain formulas give for {dtype}, {memory_format} '
                f'on {device}, got {failed}; the plain modules run there, '
                'somewhat slower. Please report this with the file of `python '
                f'-m stepnet_mm.doctor --device {device.type} --json FILE`; '
                'backbone.fused=False does without the kernels and '
                'this check', stacklevel=2)
    return _checked[key]


_checked: dict[tuple, ModuleType | None] = {}


def _module(device: torch.device) -> ModuleType:
    if device.type == 'cpu':
        return tail_cpu
    from . import tail_triton
    return tail_triton


def _check(device: torch.device, dtype: torch.dtype,
           memory_format: torch.memory_format) -> list[KernelCheck]:
    samples: list[_Sample] = []
    results = []
    for name in KERNELS:
        difference, reason = torch.nan, ''
        try:
            with torch.no_grad(), torch.autocast(device.type, enabled=False):
                samples = samples or [
                    _Sample(shape, device, dtype, memory_format)
                    for shape in (*SHAPES, *[LARGE] * (device.type == 'cuda'))]
                kernels = _module(device)
                difference, shape = max(
                    (s.difference(kernels, name), s.z.shape) for s in samples)
            reason = _reason(difference, shape)
        except Exception as error:  # no compiler, Triton, device, memory, ...
            reason = f'{type(error).__name__}: {error}'[:500]
        results.append(KernelCheck(
            name, dtype, memory_format, not reason, difference, reason))
    return results


def _reason(difference: float, shape: torch.Size) -> str:
    if difference <= 1:
        return ''
    found = ('NaN and inf are not where they should be'
             if difference == torch.inf else
             f'off by {difference:.3g} times what rounding explains')
    return f'{found}, maps {tuple(shape)}'


class _Sample:
    """Maps (N, C, H, W), tables (N, C, 1, 1), and the calls of each kernel."""

    def __init__(self, shape: tuple, device: torch.device,
                 dtype: torch.dtype, memory_format: torch.memory_format):
        # The training's random numbers stay as they are.
        random = torch.Generator('cpu').manual_seed(0)

        def draw(*size: int) -> Tensor:
            return torch.randn(size, generator=random, device='cpu',
                               dtype=torch.float32)

        z, x, grad, y = draw(4, *shape)
        y.relu_()
        z[:, 1] += MEAN
        z[0, 0, 0, 0], z[-1, -1, -1, -1] = torch.nan, torch.inf
        x[0, 2, 0, 0], x[0, 3, 0, 0] = torch.nan, torch.inf
        # Where y masks nothing.
        y[0, 2:4, 0, 0], y[0, 4, 0, 0] = 1, torch.nan
        grad[0, 2, 0, 0], grad[0, 3, 0, 0] = torch.nan, torch.inf
        tables = draw(4, *shape[:2], 1, 1)
        self.z, *_ = self.maps = [
            m.to(device, dtype).contiguous(memory_format=memory_format)
            for m in (z, x, grad, y, tables[0])]
        self.tables = tables.to(device, float32_or_wider(dtype))
        # Each kernel once for other shapes: they take time to compile.
        self.most = None if shape == SHAPES[0] else 1

    def _calls(self, name: str, dtype: torch.dtype | None = None) -> list:
        """The arguments of a kernel's calls, as they are or in a dtype."""
        z, x, grad, y, flat = [m.to(dtype or m.dtype) for m in self.maps]
        tables = self.tables.to(dtype or self.tables.dtype)
        a, b, c, d = tables.unbind()
        weight, bias, mean, root = tables[:, 0].flatten(1)
        # Of an ε of 1 no rounding error comes back enlarged.
        learned = Norm(weight, bias, 1.)
        frozen = Norm(weight, None, 1., (mean, root.square()))
        rows = list(tables[:, :1])
        m = Moments(a, b, c, d, rows[0], rows[1], rows[2], rows[3], rows[0])
        some, none = Gradients(mean_f=c, identity_mean=d), Gradients()
        every = Gradients(a, b, d, c, *rows[:2])
        return dict(
            measure=[(z, x, learned), (z, None, learned), (z, x, frozen),
                     (z, None, Norm(None, None, 1.))],
            output=[(z, x, *rows[:2], a),
                    (z, x, *rows[:2], b[:1].expand_as(b))],
            step_gradient=[(grad, y, z, a, *rows[1:3]),
                           # As a mean over space gives it.
                           (flat.expand_as(z), y, z, a, *rows[1:3])],
            input_gradients=[
                (grad.clone(), z, a, b, c, m._replace(variance=variance),
                 grads) for variance in (b, None)
                for grads in (some, none, every)])[name][:self.most]

    def difference(self, kernels: ModuleType, name: str) -> float:
        """The largest difference, in units of the largest allowed one."""
        worst = 0.
        for i, args in enumerate(self._calls(name)):
            got = _run(kernels, name, args)
            # Second, so that an argument written over is found.
            want = _run(tail_reference, name,
                        self._calls(name, torch.float64)[i])
            for j, pair in enumerate(zip(got, want, strict=True)):
                worst = max(worst, self._compare(*pair, j < KERNELS[name]))
        return worst

    def _compare(self, got: Tensor, want: Tensor, is_map: bool) -> float:
        finite = want.isfinite()
        if not torch.equal(finite, got.isfinite()):
            return torch.inf
        got, want = [v.double().where(finite, 0) for v in (got, want)]
        size = 1 + want.abs().amax((2, 3), keepdim=True)
        allowed = max(MAP_BOUND, 4 * torch.finfo(self.z.dtype).eps) if (
            is_map) else TABLE_BOUND
        return float(((got - want).abs() / size).max() / allowed)


def _run(kernels: ModuleType, name: str, args: Sequence) -> list[Tensor]:
    """The results that are there."""
    results = getattr(kernels, name)(*args)
    results = (results, ) if isinstance(results, Tensor) else results
    return [r for r in results if r is not None]
