"""Reads a config as the tools of mmdet and mmpretrain do, with options."""
import copy
import importlib.util
import os.path as osp
from pathlib import Path

from mmengine.config import Config
from mmengine.utils import import_modules_from_strings

from ..config_path import closest_configs
from .lookup import each_loader, library_of

LIBRARIES = ('mmdet', 'mmpretrain', 'mmseg', 'mmrotate', 'mmpose')
#: Folders of configs in a package: those of its repository, as `mim` and
#: `_base_` find them, and those in the pure-Python style.
INSTALLED, PYTHONIC = Path('.mim', 'configs'), Path('configs')


def read_config(path: str, work_dir: str | None = None,
                options: dict | None = None,
                launcher: str = 'none') -> Config:
    """Read a config, and add the defaults of the libraries' own tools.

    Args:
        path (str): the config file, or ``'mmdet::folder/file.py'``.
        work_dir (str, optional): defaults to the config's, and that to
            ``work_dirs/<config name>``.
        options (dict, optional): changes to single keys, ``a.b=c``; the
            modules of ``custom_imports`` are imported after them.
        launcher (str): none, pytorch, slurm or mpi.

    Raises:
        ValueError: if it, or a file that it names, is absent or no config.
    """
    cfg = read_file(path)
    cfg.launcher = launcher
    if options:
        # mmengine takes _delete_ out of them.
        cfg.merge_from_dict(copy.deepcopy(options))
        # mmengine imports what the file names, but not what options add.
        if cfg.get('custom_imports'):
            import_modules_from_strings(**cfg.custom_imports)
    name = osp.splitext(osp.basename(path))[0]
    cfg.work_dir = work_dir or cfg.get('work_dir') or osp.join(
        'work_dirs', name)
    for loader in each_loader(cfg):
        if library_of(cfg) == 'mmpretrain':
            loader.setdefault('pin_memory', True)
            loader.setdefault('collate_fn', dict(type='default_collate'))
            if loader.get('num_workers'):
                loader.setdefault('persistent_workers', True)
        if loader.get('num_workers') == 0:
            loader['persistent_workers'] = False  # torch refuses it
    return cfg


def read_file(path: str) -> Config:
    """A config as mmengine reads it, without defaults.

    ``path`` may be ``'mmdet::folder/file.py'``, as in ``_base_``.

    Raises:
        ValueError: if it, or a file that it names, is absent or no config.
    """
    file = find_config(path)
    try:
        return Config.fromfile(file)
    except (Exception, SystemExit) as error:  # a config may run any code
        raise ValueError(
            f'{path}: expected a config, got {type(error).__name__}: {error}; '
            'correct it, or the path') from error


def find_config(name: str) -> Path:
    """The file of a config: a path, or ``'mmdet::folder/file.py'``.

    Raises:
        ValueError: if the library has none; names those that come close.
    """
    package, installed, inner = name.partition('::')
    if not installed:
        return Path(name)
    root = package_folder(package)
    if root is None:
        raise ValueError(
            f'CONFIG: expected a config of {", ".join(LIBRARIES)}, got '
            f'{name}; no package {package!r} is installed')
    for folder in (root / INSTALLED, root / PYTHONIC):
        if (folder / inner).is_file():
            return folder / inner
    raise ValueError(
        f'CONFIG: expected {closest_configs(inner, root / INSTALLED)}, got '
        f'{inner!r}, which {package} does not have')


def package_folder(name: str) -> Path | None:
    """Where a package is installed, without importing it; None if nowhere."""
    found = name.isidentifier() and importlib.util.find_spec(name)
    return Path(found.origin).parent if found and found.origin else None
