"""Hooks of toy_config.py, by which tests disturb its training."""
import os
import time

from mmengine.hooks import Hook
from mmengine.registry import HOOKS


@HOOKS.register_module()
class SlowHook(Hook):
    """Gives those who want to stop the training time to do so.

    Args:
        seconds (float): after each iteration.
        first (bool): not after a requeue.
    """

    def __init__(self, seconds, first=False):
        requeued = int(os.environ.get('SLURM_RESTART_COUNT', 0)) > 0
        self.seconds = 0 if first and requeued else seconds

    def after_train_iter(self, runner, *args, **kwargs):
        time.sleep(self.seconds)


@HOOKS.register_module()
class FailingHook(Hook):
    """An error on one rank."""

    def __init__(self, rank, at):
        self.rank, self.at = rank, at

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        if runner.rank == self.rank and runner.iter == self.at:
            raise RuntimeError('the disk of this rank is gone')
