"""A hook of toy_config.py, by which tests disturb its training."""
import os
import time

from mmengine.hooks import Hook
from mmengine.registry import HOOKS


@HOOKS.register_module()
class SlowHook(Hook):
    """Waits after each iteration, so that there is time to stop it.

    ``first``: not after a requeue.
    """

    def __init__(self, seconds, first=False):
        requeued = int(os.environ.get('SLURM_RESTART_COUNT', 0)) > 0
        self.seconds = 0 if first and requeued else seconds

    def after_train_iter(self, runner, *args, **kwargs):
        time.sleep(self.seconds)
