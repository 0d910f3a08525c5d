"""Finds the last checkpoint of a run that is whole."""
import errno
import os
import os.path as osp
import re
import stat

from mmengine.fileio import LocalBackend, get_file_backend

from ..safe_loading.loaders import load_from_local
from ..utils.pointer import POINTER, read_pointer

#: Name of a checkpoint that was saved when a job was stopped.
PREEMPTED = 'preempted_iter_{}.pth'
#: What the system says of a name that no file has or can have. All else,
#: such as a lack of rights or a stale handle, is no damage.
_NO_NAME = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP,
            errno.EINVAL)


def latest_checkpoint(work_dir: str,
                      folder: str | None = None,
                      template: str = 'epoch_{}.pth',
                      backend_args: dict | None = None
                      ) -> tuple[str | None, dict[str, str]]:
    """The last whole checkpoint of a run.

    Args:
        work_dir (str): has the file ``last_checkpoint``.
        folder (str, optional): has the checkpoints; left out, the work dir.
        template (str): their names, ``{}`` for a number.
        backend_args (dict, optional): of storage that is not local.

    Returns:
        tuple: its path, None where there is none; and what is wrong with
        those that came after it, by path, ``last_checkpoint`` among them.

    Raises:
        UnsafeCheckpointError, MemoryError, OSError: as :func:`damage`. To
            take an earlier one instead would lose progress.
    """
    damaged: dict[str, str] = {}
    folder = folder or work_dir
    for path in [*_pointed(work_dir, folder, damaged),
                 *_beside(folder, template)]:
        if path in damaged:
            continue
        wrong = damage(path, backend_args)
        if not wrong:
            return path, damaged
        damaged[path] = wrong
    return None, damaged


def damage(path: str, backend_args: dict | None = None) -> str:
    """What is wrong with a checkpoint file, '' where it is whole.

    The safe loader loads it, which tests the checksum of every record.

    Args:
        path (str): a file that ``torch.save`` wrote.
        backend_args (dict, optional): of storage that is not local.

    Raises:
        UnsafeCheckpointError: if it holds what is no checkpoint.
        MemoryError, OSError: if this process cannot read it now, for a lack
            of memory or rights, or a stale handle.
    """
    backend = get_file_backend(path, backend_args=backend_args)
    if not isinstance(backend, LocalBackend) and not backend.exists(path):
        return 'there is no such file'
    with backend.get_local_path(path) as local:
        return _absence(local) or _damage_of_content(local)


def _pointed(work_dir: str, folder: str, damaged: dict) -> list[str]:
    """What ``last_checkpoint`` names, unless it is garbage."""
    pointer = osp.join(work_dir, POINTER)
    try:
        path = read_pointer(work_dir)
    except ValueError as error:
        damaged[pointer] = str(error)
        return []
    # Checkpoints lie in storage of another kind only if that was asked for.
    if path and _scheme(path) not in ('', _scheme(folder)):
        damaged[pointer] = f'it has no path of a checkpoint, but {path!r:.60}'
        return []
    return [path] if path else []


def _scheme(path: str) -> str:
    return path.partition('://')[0] if '://' in path else ''


def _beside(folder: str, template: str) -> list[str]:
    """The checkpoints in a folder, newest first."""
    # Best ones and published ones have no optimizer.
    names = '|'.join(
        re.escape(name).replace(re.escape('{}'), r'\d+')
        for name in (template, PREEMPTED))
    try:
        entries = [entry for entry in os.scandir(folder)
                   if re.fullmatch(names, entry.name)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [entry.path for entry in sorted(entries, key=_age)]


def _age(entry: os.DirEntry) -> tuple[float, int]:
    """Smaller for a newer file; a copied folder may have one date."""
    numbers = re.findall(r'\d+', entry.name) or [0]
    return -entry.stat(follow_symlinks=False).st_mtime, -int(numbers[-1])


def _absence(path: str) -> str:
    try:
        if stat.S_ISREG(os.stat(path).st_mode):
            return ''
    except OSError as error:
        if error.errno not in _NO_NAME:
            raise
        return 'there is no such file'
    return 'it is no file'


def _damage_of_content(path: str) -> str:
    try:
        load_from_local(path, 'cpu')
    except ValueError as error:
        return f'it cannot be loaded ({error})'
    return ''
