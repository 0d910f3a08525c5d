"""What a run saves has to load again, by the loader that runs nothing."""
import os
import weakref
from collections import Counter, OrderedDict, deque
from contextlib import suppress
from decimal import Decimal
from uuid import UUID

import numpy as np

from .loaders import refusal

#: Tensors, and most of a file.
WEIGHTS = 'state_dict', 'ema_state_dict', 'optimizer'
_warned: weakref.WeakSet = weakref.WeakSet()


def save_plain(runner, checkpoint: dict) -> None:
    """Have texts, paths and containers saved as Python's own types.

    At a run's first save a warning names what will still not load.

    Args:
        runner (Runner): its logger says so.
        checkpoint (dict): what is going to be saved; parts are replaced.
    """
    for key in checkpoint.keys() - set(WEIGHTS):
        with suppress(RecursionError):  # it holds itself
            checkpoint[key] = _plain(checkpoint[key])
        reason = runner not in _warned and refusal(checkpoint[key])
        if reason:
            runner.logger.warning(
                f'checkpoint: expected what a resume can load, got {reason} '
                f'in its {key}; no checkpoint of this run will resume before '
                'that is of plain types')
    _warned.add(runner)


def _plain(value):
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, str):  # numpy's, too
        return str.__str__(value)
    if isinstance(value, np.ndarray) and value.dtype.kind not in 'biufc':
        return _plain(value.tolist())
    if isinstance(value, dict):
        made = {_plain(key): _plain(part) for key, part in value.items()}
        kind = type(value)
        if kind in (Counter, OrderedDict):
            made = kind(made)
            vars(made).update(vars(value))  # versions, of a state dict
        return made
    if isinstance(value, (Decimal, UUID)):
        return str(value)
    if isinstance(value, (list, tuple, deque)):
        parts = map(_plain, value)
        return tuple(parts) if isinstance(value, tuple) else list(parts)
    return value
