"""A training state that is this run's, of types that load again."""
import os
import os.path as osp
from collections import Counter, OrderedDict, defaultdict, deque
from contextlib import suppress
from datetime import date, time, timedelta
from decimal import Decimal
from uuid import UUID

import numpy as np
import torch
from mmengine.hooks import CheckpointHook, Hook
from mmengine.runner import BaseLoop
from torch import Tensor
from torch.nn import Parameter

from .config_text import drop_texts
from .loaders import keep_own_files, refusal
from .unpickler import FACTORIES, is_plain

#: Values of which some types load, such as times of a fixed zone, and others
#: can be saved as text.
_TEXT = Decimal, UUID, date, time, timedelta


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
    """:func:`make_own` and :func:`save_plain` for mmengine's hook.

    Not for a FlexibleRunner, whose checkpoints are folders.
    """

    def after_load_checkpoint(self, runner, checkpoint: dict) -> None:
        """Make a resumed state this run's."""
        if resumes(runner):
            make_own(runner, checkpoint)

    def before_save_checkpoint(self, runner, checkpoint: dict) -> None:
        """Save plain types."""
        save_plain(runner, checkpoint)


def save_plain(runner, checkpoint: dict) -> None:
    """Replace texts, containers and what will not load by plain types.

    A warning names a type that will not load.

    Args:
        runner (Runner): its logger warns.
        checkpoint (dict): is going to be saved; parts are replaced.
    """
    for key in list(checkpoint):
        reason = ''
        with suppress(RecursionError):  # it holds itself
            checkpoint[key] = _plain(checkpoint[key])
            reason = refusal(_plain(checkpoint[key], tensors=False))
        if reason:
            runner.logger.warning(
                f'checkpoint: expected what a resume can load, got {reason} '
                f'in its {key}; no checkpoint of this run will resume before '
                'that is of plain types')


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
    if isinstance(value, os.PathLike) and refusal(value):
        return os.fspath(value)
    return str(value) if isinstance(value, _TEXT) and refusal(value) else value
