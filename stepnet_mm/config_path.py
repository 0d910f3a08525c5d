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
    """
    wanted = PurePath(f'{name}'.removesuffix('.py') + '.py')
    folder = next(filter(Path.is_dir, FOLDERS), FOLDERS[1]).resolve()
    for path in sorted(folder.rglob('*.py')):
        parts = path.relative_to(folder).parts
        if parts[-len(wanted.parts):] == wanted.parts:
            return str(path)
    raise ValueError('config_path: expected '
                     f'{closest_configs(wanted.name, folder)}, got {name!r}')


def closest_configs(name: str, folder: Path) -> str:
    """The configs in a folder whose names come close to one, for an error."""
    paths = {path.name: path.relative_to(folder).as_posix()
             for path in folder.rglob('*.py')}
    close = difflib.get_close_matches(PurePath(name).name, paths)
    return ' or '.join(paths[found] for found in close) or (
        f'a file in {folder}')
