"""What of a checkpoint's training state is not for this run."""
import os.path as osp

from mmengine.hooks import CheckpointHook, Hook
from mmengine.runner import BaseLoop

from .config_text import drop_texts
from .own_files import keep_own_files
from .plain_state import save_plain


def make_own(runner, checkpoint: dict) -> None:
    """Leave of a resumed state what is this run's.

    Its config is the Runner's, and the files that a hook may delete are those
    of the folder that it saves in.

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
    """Resumes and saves this run's where mmengine's checkpoint hook does.

    Not for a FlexibleRunner, whose checkpoints are folders.
    """

    def after_load_checkpoint(self, runner, checkpoint: dict) -> None:
        """Leave what is this run's."""
        if resumes(runner):
            make_own(runner, checkpoint)

    def before_save_checkpoint(self, runner, checkpoint: dict) -> None:
        """Save what loads again."""
        save_plain(runner, checkpoint)
