"""Finds the configs that travel with the package."""
import difflib
from pathlib import Path, PurePath

PACKAGE = Path(__file__).parent
#: An installation has the first (setup.py), a bare checkout only the second.
FOLDERS = (PACKAGE / '.mim' / 'configs', PACKAGE.parent / 'configs')


def config_path(name: str) -> str:
    """The path of one of our configs, for another project's ``_base_``.

    ::

        _base_ = __import__('stepnet_mm').config_path(
            'faster_rcnn_r50_stepnet.py')

    Args:
        name (str): the file's base name, which is unique over all folders,
            or its path in ``configs/``; ``.py`` may be left out.

    Returns:
        str: the absolute path.

    Raises:
        ValueError: if there is no such config; names those that come close.
        FileNotFoundError: if the package came without its configs.
    """
    wanted = PurePath(f'{name}'.removesuffix('.py') + '.py')
    folder = _folder()
    paths = [path.relative_to(folder) for path in sorted(folder.rglob('*.py'))]
    for path in paths:
        if path.parts[-len(wanted.parts):] == wanted.parts:
            return str(folder / path)
    raise ValueError(
        f'config_path: expected {_suggestion(wanted.name, paths)}, got '
        f'{name!r}, which is no config in {folder}')


def _folder() -> Path:
    for folder in FOLDERS:
        if folder.is_dir():
            return folder.resolve()
    raise FileNotFoundError(
        f'config_path: expected {FOLDERS[0]} (an installation) or '
        f'{FOLDERS[1]} (a checkout), got neither; install stepnet_mm with pip')


def _suggestion(wanted: str, paths: list) -> str:
    by_name = {path.name: path.as_posix() for path in paths}
    close = difflib.get_close_matches(wanted, by_name)
    names = ' or '.join(by_name[name] for name in close)
    return names or 'one of those in its README.md'
