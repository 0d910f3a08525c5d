"""Saves plain types, which the safe loader loads again."""
import os
import weakref
from collections import Counter, OrderedDict, deque
from contextlib import suppress
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np

from .loaders import refusal

#: Most of a file; checked by one value of each type.
WEIGHTS = 'state_dict', 'ema_state_dict', 'optimizer'
#: Runner -> the types that were checked.
_judged: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def save_plain(runner, checkpoint: dict) -> None:
    """Replace texts, paths and containers by Python's own types.

    A warning names the other types that will not load, once for each.

    Args:
        runner (Runner): its logger warns.
        checkpoint (dict): is going to be saved; parts are replaced.
    """
    first = runner not in _judged
    judged = _judged.setdefault(runner, set())
    for key in list(checkpoint):
        found: dict[type, Any] = {}
        with suppress(RecursionError):  # it holds itself
            checkpoint[key] = _plain(checkpoint[key], found)
        new = [found[kind] for kind in found.keys() - judged]
        judged.update(found)
        whole = first and key not in WEIGHTS
        reason = next(filter(None, map(
            refusal, [checkpoint[key]] if whole else new)), '')
        if reason:
            runner.logger.warning(
                f'checkpoint: expected what a resume can load, got {reason} '
                f'in its {key}; no checkpoint of this run will resume before '
                'that is of plain types')


def _plain(value, found: dict):
    """The value of plain types; ``found`` gets one of each other type."""
    def plain(part):
        return _plain(part, found)

    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, str):  # numpy's, too
        return str.__str__(value)
    if isinstance(value, np.ndarray) and value.dtype.kind not in 'biufc':
        return plain(value.tolist())
    if isinstance(value, dict):
        made = {plain(key): plain(part) for key, part in value.items()}
        kind = type(value)
        if kind in (Counter, OrderedDict):
            made = kind(made)
            vars(made).update(vars(value))  # versions, of a state dict
        return made
    if isinstance(value, (Decimal, UUID)):
        return str(value)
    if isinstance(value, (list, tuple, deque)):
        parts = map(plain, value)
        return tuple(parts) if isinstance(value, tuple) else list(parts)
    found.setdefault(type(value), value)
    return value
