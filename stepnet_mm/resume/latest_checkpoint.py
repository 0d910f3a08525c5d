"""Finds the last checkpoint of a run that is whole."""
import glob
import os.path as osp
import re
import zipfile

from mmengine.fileio import get_file_backend

#: Name of a checkpoint that was saved when a job was stopped.
PREEMPTED = 'preempted_iter_{}.pth'


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
        those that came after it, by path.
    """
    damaged: dict[str, str] = {}
    for path in _candidates(work_dir, folder or work_dir, template):
        wrong = damage(path, backend_args)
        if not wrong:
            return path, damaged
        damaged[path] = wrong
    return None, damaged


def damage(path: str, backend_args: dict | None = None) -> str:
    """What is wrong with a checkpoint file, '' where it is whole.

    torch writes a zip file with a checksum (CRC-32) of every record and does
    not look at it when it loads.

    Args:
        path (str): a file that ``torch.save`` wrote.
        backend_args (dict, optional): of storage that is not local.
    """
    backend = get_file_backend(path, backend_args=backend_args)
    if not backend.exists(path):
        return 'there is no such file'
    with backend.get_local_path(path) as local:
        return _damage_of_zip(str(local))


def _candidates(work_dir: str, folder: str, template: str) -> list[str]:
    """The last one, then those beside it, newest first."""
    paths = []
    pointer = osp.join(work_dir, 'last_checkpoint')
    if osp.isfile(pointer):
        with open(pointer) as file:
            paths.append(file.read().strip())
    # Best ones and published ones have no optimizer.
    names = '|'.join(
        re.escape(name).replace(re.escape('{}'), r'\d+')
        for name in (template, PREEMPTED))
    beside = [
        path for path in glob.glob(osp.join(folder, '*'))
        if re.fullmatch(names, osp.basename(path)) and path not in paths
    ]
    return paths + sorted(beside, key=osp.getmtime, reverse=True)


def _damage_of_zip(path: str) -> str:
    try:
        with zipfile.ZipFile(path) as file:
            record = file.testzip()
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError,
            RuntimeError) as error:
        return f'it is cut off or no checkpoint ({error})'
    return record and f'the checksum of its record {record} is wrong' or ''
