"""Training in mixed precision."""
import tempfile
from pathlib import Path

import torch

from ..launch.report import Report, Unavailable, one_line
from ..launch.trial import train_tiny
from .networks import library, precision, short
from .series import REPORT_IT


def check(report: Report, device: torch.device) -> None:
    """Whether a few iterations with AmpOptimWrapper end in a finite loss."""
    if device.type == 'cpu':
        raise Unavailable('AmpOptimWrapper of mmengine needs a GPU')
    for dtype in (torch.float16, torch.bfloat16):
        try:
            with precision(device, dtype):
                pass
            with tempfile.TemporaryDirectory() as folder:
                _train(short(dtype), Path(folder, short(dtype)))
            report.ok(f'{short(dtype)}: 4 iterations with AmpOptimWrapper')
        except Unavailable as error:
            report.skip(str(error))
        except Exception as error:
            report.error(f'{short(dtype)}: {one_line(error)}', REPORT_IT)


def _train(dtype: str, folder: Path) -> None:
    train_tiny(library(), str(folder), max_iters=4, optim_wrapper=dict(
        type='AmpOptimWrapper', dtype=dtype,
        optimizer=dict(type='SGD', lr=.01, momentum=.9)))
