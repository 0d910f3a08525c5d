"""Local files that are whole or not there, and how to tell a damaged one."""
import os
import os.path as osp
import shutil
import zipfile

from mmengine.fileio import LocalBackend, register_backend

#: Ends the name of a file that is being written.
UNFINISHED = '.unfinished'


@register_backend('atomic_local', force=True)
class AtomicLocalBackend(LocalBackend):
    """mmengine's local backend, whose writes replace a file in one step.

    What is written goes to a file beside, is flushed to the disk and renamed.
    A process killed at any moment leaves the old file or the new one.

    Raises:
        OSError: if it cannot be written; says how much space was there. The
            old file is whole then.
    """

    def put(self, obj: bytes, filepath) -> None:
        folder = osp.dirname(osp.abspath(filepath))
        os.makedirs(folder, exist_ok=True)
        beside = f'{filepath}{UNFINISHED}'
        try:
            with open(beside, 'wb') as file:
                file.write(obj)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, filepath)
            _sync(folder)
        except OSError as error:
            _remove(beside)
            raise OSError(
                error.errno,
                f'{filepath} could not be written: {error.strerror}; it takes '
                f'{len(obj) / 2**20:.1f} MiB beside the files that are there, '
                f'{_free(folder)} free. Nothing that was saved before is '
                'lost: make space and go on with --resume') from error

    def put_text(self, obj: str, filepath, encoding: str = 'utf-8') -> None:
        self.put(obj.encode(encoding), filepath)


def damage(path: str) -> str:
    """What is wrong with a checkpoint file, '' where it is whole.

    torch writes a zip file with a checksum (CRC-32) of every record and does
    not look at it when it loads.

    Args:
        path (str): a local file that ``torch.save`` wrote.
    """
    if not osp.isfile(path):
        return 'there is no such file'
    try:
        with zipfile.ZipFile(path) as file:
            record = file.testzip()
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError,
            RuntimeError) as error:
        return f'it is cut off or no checkpoint ({error})'
    return record and f'the checksum of its record {record} is wrong' or ''


def _sync(folder: str) -> None:
    """The rename itself reaches the disk."""
    if os.name == 'posix':
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _remove(path: str) -> None:
    if osp.exists(path):
        os.remove(path)


def _free(folder: str) -> str:
    return f'{shutil.disk_usage(folder).free / 2**20:.1f} MiB'
