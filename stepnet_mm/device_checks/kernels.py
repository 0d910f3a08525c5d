"""The fused tail's kernels, each by itself."""
from itertools import groupby

import torch

from ..launch.report import Report, Unavailable
from ..ops.tail_check import HAS_TRITON, KernelCheck, check_kernels
from .networks import precision, short
from .series import REPORT_IT


def check(report: Report, device: torch.device) -> None:
    """Whether every kernel computes what the plain formulas do."""
    if device.type == 'cuda' and not HAS_TRITON:
        report.warn('Triton is not installed, StepNet runs without its fused '
                    'tail', 'pip install triton makes it faster')
        return
    results = check_kernels(device)
    for kind, of_kind in groupby(
            results, lambda found: (found.dtype, found.memory_format)):
        try:
            with precision(device, kind[0]):
                pass
        except Unavailable as reason:  # the plain modules have it neither
            report.skip(str(reason))
        else:
            _add(report, ' '.join(map(short, kind)), list(of_kind))


def _add(report: Report, kind: str, results: list[KernelCheck]) -> None:
    wrong = [found for found in results if not found.ok]
    for found in wrong:
        report.error(f'{kind}: {found.kernel}: {found.reason}', REPORT_IT)
    if not wrong:
        largest = max(found.difference for found in results)
        report.ok(f'{kind}: {len(results)} kernels, at most {largest:.2g} of '
                  'the allowed difference', differences={
                      found.kernel: f'{found.difference:.2g}'
                      for found in results})
