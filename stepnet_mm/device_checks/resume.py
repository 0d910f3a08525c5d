"""A training that is killed and resumed."""
import multiprocessing
import os
import signal
import tempfile
from pathlib import Path
from typing import Any

import torch
from mmengine.hooks import Hook

from ..launch.report import Report
from ..launch.trial import require_equal, train_tiny
from .networks import library

#: Iterations in all, each with a checkpoint behind it, and that of the kill.
ITERATIONS, KILLED_IN = 4, 3
SETTINGS: dict[str, Any] = dict(max_iters=ITERATIONS,
                randomness=dict(seed=0, deterministic=True))


class _Kill(Hook):
    """Kills its own process."""

    def after_train_iter(self, runner, *_, **__) -> None:
        """Count, and end."""
        if runner.iter + 1 == KILLED_IN:
            os.kill(os.getpid(), signal.SIGKILL)


def check(report: Report, device: torch.device) -> None:
    """Whether it ends in the same weights as one that was not killed."""
    with tempfile.TemporaryDirectory() as folder:
        killed = str(Path(folder, 'killed'))
        _train_and_die(device, killed)
        resumed = train_tiny(library(), killed, resume=True, **SETTINGS)
        whole = train_tiny(library(), str(Path(folder, 'whole')), **SETTINGS)
        require_equal(resumed.state_dict(), whole.state_dict(), 'resume',
                      'a training that was not killed')
    report.ok(f'killed in iteration {KILLED_IN}, resumed, the same bit for '
              'bit (deterministic=True)')


def _train_and_die(device: torch.device, folder: str) -> None:
    # A fork before torch has begun to compute; CUDA does not take one at all.
    method = 'fork' if device.type == 'cpu' else 'spawn'
    context: Any = multiprocessing.get_context(method)
    process = context.Process(
        target=train_tiny, args=(library(), folder),
        kwargs=dict(SETTINGS, custom_hooks=[_Kill()]))
    process.start()
    process.join()
    if process.exitcode != -signal.SIGKILL:
        raise RuntimeError('the training to be killed: expected it to get to '
                           f'iteration {KILLED_IN}, got exit code '
                           f'{process.exitcode} before')
