"""Finds the last undamaged checkpoint of a run."""
import logging
import os
import os.path as osp
import re
from errno import ENAMETOOLONG, ENOENT, ENOTDIR
from math import inf
from stat import S_ISREG

from mmengine.fileio import LocalBackend, get_file_backend
from mmengine.logging import print_log

from ..safe_loading.loaders import load_from_local
from ..utils.files import LAST_CHECKPOINT, read_last_checkpoint

#: Name of a checkpoint of a preempted run.
PREEMPTED = 'preempted_iter_{}.pth'
#: Keys that mmengine's resume reads.
NEEDED = 'meta', 'state_dict', 'message_hub'


def latest_checkpoint(work_dir: str, folder: str | None = None,
                      template: str = 'epoch_{}.pth',
                      backend_args: dict | None = None
                      ) -> tuple[str | None, dict[str, str]]:
    """The last undamaged checkpoint of a run; of remote storage, the last.

    ``last_checkpoint`` has an absolute path. In a work dir that was copied or
    moved it points to another run, so a file of the same name here takes
    precedence, and so does a newer one here. The checkpoints are in
    ``folder``, left out in the work dir; their template has ``{}`` or
    ``{:03d}`` for a number.

    Returns:
        tuple: its path or None; and the damage of later ones, by path.

    Raises:
        UnsafeCheckpointError: if one holds objects of other classes.
        MemoryError, OSError: if one cannot be read now, for a lack of memory
            or rights, or a stale handle. An earlier checkpoint instead would
            lose progress.
    """
    damaged: dict[str, str] = {}
    folder = folder or work_dir
    pointed = read_last_checkpoint(work_dir)
    backend = get_file_backend(folder, backend_args=backend_args)
    if not isinstance(backend, LocalBackend):
        return pointed, damaged
    for path in dict.fromkeys(
            _candidates(pointed, folder, work_dir, template)):
        if wrong := _damage(path):
            damaged[path] = wrong
            continue
        if path == pointed and osp.dirname(path) not in (folder, work_dir):
            print_log(
                f'{osp.join(work_dir, LAST_CHECKPOINT)}: expected a '
                f'checkpoint of this work dir, got {path} and no newer one '
                'here; the run goes on from it, delete last_checkpoint if it '
                'is not meant',
                logger='current', level=logging.WARNING)
        return path, damaged
    return None, damaged


def _damage(path: str) -> str:
    """The damage of a checkpoint file; '' for none.

    The safe loader, which tests the checksum of every record, loads it.
    """
    if not _is_file(path):
        return 'there is no such file'
    try:
        content = load_from_local(path, 'cpu')
    except ValueError as error:
        return f'it cannot be loaded ({error})'
    absent = absent_parts(content if isinstance(content, dict) else {})
    return f'it has no {", ".join(absent)}' if absent else ''


def absent_parts(checkpoint: dict) -> list[str]:
    """The keys that mmengine's resume reads and does not find."""
    return [key for key in NEEDED if not isinstance(checkpoint.get(key), dict)]


def _candidates(pointed: str | None, folder: str, work_dir: str,
                template: str) -> list[str]:
    """Paths of checkpoints, the first choice first."""
    beside = _beside(folder, template)
    if pointed is None:
        return sorted(beside, key=_age)
    for here in (folder, work_dir):
        own = osp.join(here, osp.basename(pointed))
        if own == pointed or _is_file(own):
            return [own, *sorted(beside, key=_age)]
    return sorted([pointed, *beside], key=_age)


def _beside(folder: str, template: str) -> list[str]:
    """The checkpoints in a folder."""
    # Best ones and published ones have no optimizer. A field of a template
    # is a number.
    names = '|'.join(re.sub(r'\\\{.*?\\\}', r' *\\d+', re.escape(name))
                     for name in (template, PREEMPTED))
    try:
        return [entry.path for entry in os.scandir(folder)
                if re.fullmatch(names, entry.name)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _age(path: str) -> tuple[float, int]:
    """Smaller for a newer file; a copied folder may have one date."""
    numbers = re.findall(r'\d+', osp.basename(path)) or [0]
    time = osp.getmtime(path) if osp.exists(path) else inf  # comes first
    return -time, -int(numbers[-1])


def _is_file(path: str) -> bool:
    """Missing rights or a stale handle, which are no damage, are an error."""
    try:
        return S_ISREG(os.stat(path).st_mode)
    except ValueError:  # a zero byte in it
        return False
    except OSError as error:
        if error.errno not in (ENOENT, ENOTDIR, ENAMETOOLONG):
            raise
        return False
