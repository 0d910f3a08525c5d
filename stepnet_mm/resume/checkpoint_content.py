"""Before a save: a training state of this run alone, of types that load."""
import os.path as osp
from collections import Counter, OrderedDict, defaultdict, deque
from contextlib import suppress

import numpy as np
import torch
from mmengine.hooks import CheckpointHook, Hook
from mmengine.runner import BaseLoop
from torch import Tensor
from torch.nn import Parameter

from ..safe_loading.config_text import drop_texts
from ..safe_loading.loaders import keep_own_files, refusal
from ..safe_loading.unpickler import FACTORIES, is_plain


def checkpoint_folder(runner, hook: CheckpointHook) -> str:
    """Where a hook saves, before it knows."""
    if hook.out_dir is None:
        return runner.work_dir
    return osp.join(hook.out_dir, osp.basename(runner.work_dir))


def resumes(runner) -> bool:
    """Whether a training goes on."""
    # A Runner that validates or tests has a config in place of the loop.
    return runner._resume and isinstance(runner._train_loop, BaseLoop)


class CheckpointContentHook(Hook):
    """Makes a resumed state this run's, and saves plain types.

    The config is then the Runner's, and a hook may delete files of the folder
    that it saves in alone.
    """
    priority = 'LOWEST'  # what other hooks add to a checkpoint is there

    def after_load_checkpoint(self, runner, checkpoint: dict) -> None:
        """Drop configs, and names of files in other folders."""
        if not resumes(runner):
            return
        drop_texts(checkpoint)
        for hook in runner.hooks:
            if isinstance(hook, CheckpointHook):
                keep_own_files(checkpoint, checkpoint_folder(runner, hook))

    def before_save_checkpoint(self, runner, checkpoint: dict) -> None:
        """Replace texts, containers and what will not load by plain types.

        A warning names a type that will not load.
        """
        for key in list(checkpoint):
            reason = ''
            with suppress(RecursionError):  # it holds itself
                checkpoint[key] = _plain(checkpoint[key])
                reason = refusal(_plain(checkpoint[key], tensors=False))
            if reason:
                runner.logger.warning(
                    'checkpoint: expected what a resume can load, got '
                    f'{reason} in its {key}; no checkpoint of this run will '
                    'resume before that is of plain types')


def add_content_hook(runner) -> None:
    """Give a runner a :class:`CheckpointContentHook`, if it has none."""
    if not any(isinstance(hook, CheckpointContentHook)
               for hook in runner.hooks):
        runner.register_hook(CheckpointContentHook())


def _plain(value, tensors: bool = True):
    """The value of plain types; without tensors it is quick to save."""
    def plain(part):
        return _plain(part, tensors)

    if type(value) in (Tensor, Parameter) and not tensors and (
            value.layout == torch.strided and not value.is_quantized):
        return None
    if isinstance(value, str):  # numpy's, too
        return str.__str__(value)
    if isinstance(value, np.ndarray) and not is_plain(value.dtype):
        return plain(value.tolist())
    if isinstance(value, dict):
        made = {plain(key): plain(part) for key, part in value.items()}
        kind = type(value)
        if kind in (Counter, OrderedDict):
            made = kind(made)
            vars(made).update(vars(value))  # versions, of a state dict
        if (isinstance(value, defaultdict)
                and value.default_factory in FACTORIES):
            return defaultdict(value.default_factory, made)
        return made
    if isinstance(value, deque):
        return deque(map(plain, value), value.maxlen)
    if isinstance(value, (list, tuple)):
        parts = map(plain, value)
        return tuple(parts) if isinstance(value, tuple) else list(parts)
    return value
