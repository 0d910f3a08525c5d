"""One loader for every checkpoint: weights only, with an allow-list.

mmengine 0.10.7 unpickles a checkpoint in full where torch lets it, and
onedl's 0.10.12 falls back to doing so: a malicious file runs its code. This
loader takes the place of theirs for local paths and for every remote prefix.
"""
import contextlib
import functools
import os
import os.path as osp
import pickle
import re

import numpy as np
import torch

_FORCE = 'TORCH_FORCE_WEIGHTS_ONLY_LOAD'
_FORBID = 'TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD'


class UnsafeCheckpointError(RuntimeError):
    """A checkpoint refers to an object that is not on the allow-list."""


def register_safe_loaders() -> None:
    """Take the place of all of mmengine's checkpoint loaders."""
    # At the top it would import what imports this module (registration.py).
    from mmengine.runner.checkpoint import CheckpointLoader
    for prefix, loader in list(CheckpointLoader._schemes.items()):
        if getattr(loader, 'weights_only', False):
            continue
        safe = load_from_local if prefix == '' else _safe_remote(loader)
        CheckpointLoader.register_scheme(prefix, safe, force=True)


def load_from_local(filename: str, map_location=None) -> dict:
    """Load a local checkpoint with ``weights_only=True`` and the allow-list.

    Args:
        filename (str): its path.
        map_location: as for :func:`torch.load`.

    Returns:
        dict: the checkpoint.

    Raises:
        FileNotFoundError: if there is no such file.
        UnsafeCheckpointError: if it names an object not on the allow-list;
            the object is neither imported nor called.
        ValueError: if it cannot be read as a checkpoint.
    """
    path = osp.expanduser(filename)
    if not osp.isfile(path):
        raise FileNotFoundError(
            f'checkpoint {filename} does not exist; check load_from, '
            'init_cfg.checkpoint or --resume')
    return _read(lambda: torch.load(
        path, map_location=map_location, weights_only=True), filename)


load_from_local.weights_only = True


def _safe_remote(loader):
    """A remote loader under which every torch.load is weights-only."""

    @functools.wraps(loader)  # mmengine logs the name
    def load(filename, map_location=None):
        return _read(lambda: loader(filename, map_location=map_location),
                     filename)

    load.weights_only = True
    return load


def _read(read, filename: str) -> dict:
    with _forced_weights_only(), _allowed():
        try:
            return read()
        except Exception as error:
            _explain(error, filename)
            raise


def _explain(error: Exception, filename: str) -> None:
    found = re.search(r'(?:GLOBAL|reduce for unrecognized function|'
                      r'Unsupported class) ([\w.]+)', str(error))
    if found:
        raise UnsafeCheckpointError(
            f'checkpoint {filename} was refused: it refers to '
            f'{found.group(1)}, which is no part of weights or of a training '
            'state; nothing of it was run. If you trust its source, '
            're-save its state_dict alone') from None
    unreadable = (EOFError, RuntimeError, ValueError, KeyError,
                  pickle.UnpicklingError)
    if osp.isfile(osp.expanduser(filename)) and (
            isinstance(error, unreadable)):
        # Torch's own text advises to load without weights_only.
        inner = re.search(r'WeightsUnpickler error: *(.*)', str(error))
        reason = inner.group(1) if inner else str(error).partition('\n')[0]
        raise ValueError(
            f'checkpoint {filename} cannot be read (it is cut off, or not a '
            f'torch checkpoint): {type(error).__name__} {reason}'.rstrip()
        ) from None


@contextlib.contextmanager
def _forced_weights_only():
    """Have torch force weights_only, whatever a caller inside asks for."""
    before = {name: os.environ.pop(name, None) for name in (_FORCE, _FORBID)}
    os.environ[_FORCE] = '1'
    try:
        yield
    finally:
        del os.environ[_FORCE]
        os.environ.update({k: v for k, v in before.items() if v is not None})


def _allowed():
    safe_globals = getattr(torch.serialization, 'safe_globals', None)
    if safe_globals is None:  # torch < 2.5: plain weights only
        return contextlib.nullcontext()
    return safe_globals(_allow_list())


def _methods() -> dict:
    """The classes in mmengine's training states, and the methods they name."""
    # This module is imported amid mmengine's own imports.
    from mmengine.logging import HistoryBuffer
    from mmengine.optim import OneCycleParamScheduler
    return {
        HistoryBuffer: ('min', 'max', 'mean', 'current'),
        OneCycleParamScheduler: ('_annealing_cos', '_annealing_linear')
    }


@functools.lru_cache(None)
def _allow_list() -> list:
    """What mmengine's own checkpoints hold beside tensors."""
    dtypes = [type(np.dtype(t)) for t in ('f8', 'i8', 'u4')]
    # A file written under numpy 1 names these two otherwise than numpy 2.
    rebuild = [
        _named(function, module, name)
        for function, name in ((np.zeros(0).__reduce__()[0], '_reconstruct'),
                               (np.float64().__reduce__()[0], 'scalar'))
        for module in ('numpy.core.multiarray', 'numpy._core.multiarray')
    ]
    return [
        np.ndarray, np.dtype, *dtypes, *rebuild, *_methods(),
        _named(_known_method, 'builtins', 'getattr')
    ]


def _known_method(owner, name: str):
    """getattr for the references to methods that mmengine pickles.

    The real getattr on the allow-list would open every door: it reaches
    ``__globals__`` of an allowed class, and from there eval.
    """
    known = any(owner is cls and name in names
                for cls, names in _methods().items())
    if not known:
        raise pickle.UnpicklingError(f'GLOBAL builtins.getattr of {name!r}')
    return getattr(owner, name)


def _named(function, module: str, name: str):
    """A stand-in that the unpickler finds under the given name."""

    def stand_in(*args):
        return function(*args)

    stand_in.__module__ = module
    stand_in.__name__ = stand_in.__qualname__ = name
    return stand_in
