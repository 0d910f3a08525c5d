"""The lines of a config that inherits another one and changes some keys."""
import importlib.util
import os.path as osp
import re
from pathlib import Path

from mmengine.config import Config
from mmengine.config.utils import MODULE2PACKAGE
from mmengine.utils import is_installed

LIBRARIES = ('mmdet', 'mmpretrain', 'mmseg', 'mmrotate', 'mmpose')
#: Folders of configs in a package: those of its repository, as `mim` and
#: `_base_` find them, and those in the pure-Python style.
INSTALLED, PYTHONIC = Path('.mim', 'configs'), Path('configs')


def is_pythonic(path: Path) -> bool:
    """Whether a config has the pure-Python style, with ``read_base``."""
    return Config._is_lazy_import(str(path))


def inherit(path: Path, folder: Path, changes: dict,
            **variables) -> list[str]:
    """The lines of a config in ``folder`` that inherits ``path``.

    They are in the style of the inherited config, since mmengine does not
    mix the two.

    Args:
        path (Path): the inherited config.
        folder (Path): where the lines will be.
        changes (dict): keys and list indices, ``('model', 'backbone')``, of
            a dict in it -> what is set there. A class among that is imported
            in the pure-Python style, and its name with its library elsewhere.
        **variables: what is set at the top.

    Raises:
        ValueError: if the pure-Python style has no name for the path.
    """
    write = _pythonic if is_pythonic(path) else _with_base
    base, lines = write(path, folder, changes)
    return [*base, *_assignments(variables), *lines]


def _with_base(path: Path, folder: Path, changes: dict) -> tuple:
    tree: dict = {}
    inside = []
    for keys, settings in changes.items():
        if any(isinstance(key, int) for key in keys):
            # mmengine merges dicts alone, so this changes the base itself.
            inside.append(f'_base_.{_reference(keys)}.update('
                          f'{_source(settings)})')
        else:
            _set(tree, keys, settings)
    base = [f'_base_ = {_base_name(path, folder)!r}']
    return base, [*_assignments(tree), *inside]


def _pythonic(path: Path, folder: Path, changes: dict) -> tuple:
    base = ['from mmengine.config import read_base', '', 'with read_base():',
            f'    from {_base_module(path, folder)} import *', '']
    lines = []
    for keys, settings in changes.items():
        classes = [v for v in settings.values() if isinstance(v, type)]
        lines += [f'from {c.__module__} import {c.__name__}' for c in classes]
        lines.append(f'{_reference(keys)}.update({_source(settings)})')
    return base, lines


def _base_name(path: Path, folder: Path) -> str:
    """The ``_base_`` that stands for a path in a config in ``folder``."""
    library, inner = _split(path, INSTALLED)
    if not library:
        return osp.relpath(path, folder)
    # mmengine knows mmseg by a package that onedl calls otherwise.
    if not is_installed(MODULE2PACKAGE[library]):
        return str(path.resolve())
    # mmengine wants word characters up to the first slash.
    detour = '' if re.match(r'\w+/', inner) else '_base_/../'
    return f'{library}::{detour}{inner}'


def _base_module(path: Path, folder: Path) -> str:
    """The module that stands for a path in a config in ``folder``."""
    library, inner = _split(path, PYTHONIC)
    inner = inner or osp.relpath(path, folder)
    *parents, file = Path(inner).parts
    names = [part for part in parents if part != '..'] + [Path(file).stem]
    if not all(name.isidentifier() for name in names):
        raise ValueError(
            'CONFIG: expected Python names, as another config with read_base '
            f'imports this one as a module, got {inner!r}; rename it, or '
            'have --out in its folder')
    up = '.' * (1 + parents.count('..'))
    start = f'{library}.{PYTHONIC}.' if library else up
    return start + '.'.join(names)


def library_of_file(path: Path) -> str | None:
    """The library that a config came with, or None."""
    return _split(path, INSTALLED)[0] or _split(path, PYTHONIC)[0] or None


def _split(path: Path, inner: Path) -> tuple:
    """The library whose folder ``inner`` holds a file, and where in it."""
    for library in LIBRARIES:
        root = package_folder(library)
        folder = root and (root / inner).resolve()
        if folder and path.resolve().is_relative_to(folder):
            return library, path.resolve().relative_to(folder).as_posix()
    return '', ''


def package_folder(name: str) -> Path | None:
    """Where a package is installed, without importing it; None if nowhere."""
    found = name.isidentifier() and importlib.util.find_spec(name)
    return Path(found.origin).parent if found and found.origin else None


def _reference(keys: tuple) -> str:
    """('model', 'parts', 0) -> 'model.parts[0]'."""
    first, *rest = keys
    return first + ''.join(
        f'.{key}' if str(key).isidentifier() else f'[{key!r}]'
        for key in rest)


def _set(tree: dict, keys: tuple, settings: dict) -> None:
    for key in keys:
        tree = tree.setdefault(key, {})
    tree.update(settings)


def _assignments(variables: dict) -> list[str]:
    return [f'{key} = {_source(value)}' for key, value in variables.items()]


def _source(value) -> str:
    """A part of a config as Python."""
    if isinstance(value, type):
        return value.__name__
    if not isinstance(value, dict):
        return repr(value)
    if all(str(key).isidentifier() for key in value):
        inner = (f'{key}={_source(v)}' for key, v in value.items())
        return f'dict({", ".join(inner)})'
    inner = (f'{key!r}: {_source(v)}' for key, v in value.items())
    return f'{{{", ".join(inner)}}}'
