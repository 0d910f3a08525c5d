"""Takes the config and the files of other runs out of a training state."""
import os.path as osp

from mmengine.hooks import CheckpointHook, Hook
from mmengine.runner import BaseLoop

from .config_text import drop_texts
from .own_files import keep_own_files
from .plain_state import save_plain


def make_own(runner, checkpoint: dict) -> None:
    """Make a state that is resumed this run's.

    The config is the Runner's, and a hook may delete files of the folder that
    it saves in alone.

    Args:
        runner (Runner): the runner, before it takes the state.
        checkpoint (dict): is changed in place.
    """
    drop_texts(checkpoint)
    for hook in runner.hooks:
        if isinstance(hook, CheckpointHook):
            keep_own_files(checkpoint, checkpoint_folder(runner, hook))


def checkpoint_folder(runner, hook: CheckpointHook) -> str:
    """Where a hook saves, before it knows."""
    if hook.out_dir is None:
        return runner.work_dir
    return osp.join(hook.out_dir, osp.basename(runner.work_dir))


def resumes(runner) -> bool:
    """Whether a training goes on."""
    return runner._resume and trains(runner)


def trains(runner) -> bool:
    """A Runner that validates or tests has a config in place of the loop."""
    return isinstance(runner._train_loop, BaseLoop)


class OwnStateHook(Hook):
    """:func:`make_own` and :func:`.save_plain` for mmengine's hook.

    Not for a FlexibleRunner, whose checkpoints are folders.
    """

    def after_load_checkpoint(self, runner, checkpoint: dict) -> None:
        """Make a resumed state this run's."""
        if resumes(runner):
            make_own(runner, checkpoint)

    def before_save_checkpoint(self, runner, checkpoint: dict) -> None:
        """Save plain types."""
        save_plain(runner, checkpoint)
