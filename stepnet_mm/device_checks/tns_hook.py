"""Measuring while training."""
import tempfile
from pathlib import Path

import torch

from ..launch.report import Report
from ..launch.trial import require_equal, train_tiny
from .networks import library


def check(report: Report, device: torch.device) -> None:
    """Whether TNSHook changes no bit of a training."""
    with tempfile.TemporaryDirectory() as folder:
        without, measured = [
            train_tiny(library(), str(Path(folder, name)), max_iters=4,
                       randomness=dict(seed=0, deterministic=True),
                       custom_hooks=hooks)
            for name, hooks in (('without', []), ('measured', [
                dict(type='TNSHook', interval=2, figure_interval=0)]))]
        require_equal(measured.state_dict(), without.state_dict(), 'TNSHook',
                      'a training without it')
    report.ok('on and off give the same weights')
