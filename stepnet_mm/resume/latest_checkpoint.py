"""Finds the last undamaged checkpoint of a run."""
import errno
import logging
import os
import os.path as osp
import re
from math import inf
from string import Formatter

from mmengine.fileio import LocalBackend, get_file_backend
from mmengine.logging import print_log

from ..regular_file import check_regular
from ..safe_loading.loaders import load_from_local
from ..utils.checkpoint_pointer import POINTER, read_pointer

#: Name of a checkpoint of a preempted run.
PREEMPTED = 'preempted_iter_{}.pth'
#: Keys that mmengine's resume reads.
NEEDED: dict[str, tuple[str, ...]] = dict(
    meta=('epoch', 'iter'), state_dict=(),
    message_hub=('log_scalars', 'runtime_info', 'resumed_keys'))
#: Errors for a name without a file. Others, such as missing rights or a
#: stale handle, are no damage.
_NO_NAME = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP,
            errno.EINVAL)


def latest_checkpoint(work_dir: str,
                      folder: str | None = None,
                      template: str = 'epoch_{}.pth',
                      backend_args: dict | None = None
                      ) -> tuple[str | None, dict[str, str]]:
    """The last undamaged checkpoint of a run.

    ``last_checkpoint`` has an absolute path. In a work dir that was copied or
    moved it points to another run, so a file of the same name here takes
    precedence, and so does a newer one here.

    Args:
        work_dir (str): has the file ``last_checkpoint``.
        folder (str, optional): has the checkpoints; defaults to the work dir.
        template (str): their names, with ``{}`` or ``{:03d}`` for a number.
        backend_args (dict, optional): of remote storage.

    Returns:
        tuple: its path or None; and the damage of later ones, by path,
        ``last_checkpoint`` among them.

    Raises:
        UnsafeCheckpointError, MemoryError, OSError: as :func:`damage`; an
            earlier checkpoint instead would lose progress.
    """
    damaged: dict[str, str] = {}
    folder = folder or work_dir
    pointed = _pointed(work_dir, folder, damaged)
    for path in _candidates(pointed, folder, work_dir, template,
                            backend_args):
        if path in damaged:
            continue
        wrong = damage(path, backend_args)
        if not wrong:
            if path == pointed and osp.dirname(path) not in (folder, work_dir):
                _warn_of_another(path, work_dir)
            return path, damaged
        damaged[path] = wrong
    return None, damaged


def damage(path: str, backend_args: dict | None = None) -> str:
    """The damage of a checkpoint file; '' for none.

    The safe loader, which tests the checksum of every record, loads it.
    :data:`NEEDED` has to be in it.

    Args:
        path (str): a file that ``torch.save`` wrote.
        backend_args (dict, optional): of remote storage.

    Raises:
        UnsafeCheckpointError: if it holds objects of other classes.
        MemoryError, OSError: if this process cannot read it now, for a lack
            of memory or rights, or a stale handle.
    """
    absent = _absence(path, backend_args)
    if absent:
        return absent
    backend = get_file_backend(path, backend_args=backend_args)
    with backend.get_local_path(path) as local:
        return _damage_of_content(local)


def _warn_of_another(path: str, work_dir: str) -> None:
    print_log(f'{osp.join(work_dir, POINTER)}: expected a checkpoint of this '
              f'work dir, got {path} and no newer one here; the run goes on '
              'from it, delete last_checkpoint if it is not meant',
              logger='current', level=logging.WARNING)


def _pointed(work_dir: str, folder: str, damaged: dict) -> str | None:
    """The path in ``last_checkpoint``, unless it is garbage."""
    pointer = osp.join(work_dir, POINTER)
    try:
        path = read_pointer(work_dir)
    except ValueError as error:
        damaged[pointer] = str(error)
        return None
    # Checkpoints lie in storage of another kind only if that was asked for.
    if path and _scheme(path) not in ('', _scheme(folder)):
        damaged[pointer] = f'it has no path of a checkpoint, but {path!r:.60}'
        return None
    return path


def _candidates(pointed: str | None, folder: str, work_dir: str,
                template: str, backend_args: dict | None) -> list[str]:
    """Paths of checkpoints, the first choice first."""
    beside = _beside(folder, template)
    if pointed is None:
        return sorted(beside, key=_age)
    for here in (folder, work_dir):
        own = osp.join(here, osp.basename(pointed))
        if own == pointed or not _absence(own, backend_args):
            return [own, *sorted(beside, key=_age)]
    return sorted([pointed, *beside], key=_age)


def _scheme(path: str) -> str:
    return path.partition('://')[0] if '://' in path else ''


def _beside(folder: str, template: str) -> list[str]:
    """The checkpoints in a folder."""
    # Best ones and published ones have no optimizer.
    names = '|'.join(map(_pattern, (template, PREEMPTED)))
    try:
        return [entry.path for entry in os.scandir(folder)
                if re.fullmatch(names, entry.name)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _pattern(template: str) -> str:
    """A regular expression for a name whose fields are numbers."""
    return ''.join(
        re.escape(text) + (r' *\d+' if field is not None else '')
        for text, field, *_ in Formatter().parse(template))


def _age(path: str) -> tuple[float, int]:
    """Smaller for a newer file; a copied folder may have one date."""
    numbers = re.findall(r'\d+', osp.basename(path)) or [0]
    # Absent and remote ones come first.
    time = os.lstat(path).st_mtime if osp.lexists(path) else inf
    return -time, -int(numbers[-1])


def _absence(path: str, backend_args: dict | None) -> str:
    backend = get_file_backend(path, backend_args=backend_args)
    if not isinstance(backend, LocalBackend):
        return '' if backend.exists(path) else 'there is no such file'
    try:
        check_regular(path)
    except ValueError:
        return 'it is no file'
    except OSError as error:
        if error.errno not in _NO_NAME:
            raise
        return 'there is no such file'
    return ''


def _damage_of_content(path: str) -> str:
    try:
        content = load_from_local(path, 'cpu')
    except ValueError as error:
        return f'it cannot be loaded ({error})'
    absent = absent_parts(content if isinstance(content, dict) else {})
    return f'it has no whole {", ".join(absent)}' if absent else ''


def absent_parts(checkpoint: dict) -> list[str]:
    """The keys that mmengine's resume reads and does not find whole."""
    return [key for key, names in NEEDED.items()
            if not isinstance(checkpoint.get(key), dict)
            or not {*names} <= {*checkpoint[key]}]
