"""Local files that are whole or not there."""
import os
import os.path as osp
import shutil

from mmengine.fileio import LocalBackend, register_backend

#: Ends the name of a file that is being written.
UNFINISHED = '.unfinished'


@register_backend('atomic_local', force=True)
class AtomicLocalBackend(LocalBackend):
    """mmengine's local backend, whose writes replace a file at once.

    What is written goes to a file beside, is flushed to the disk and renamed.
    A process killed at any moment leaves the old file or the new one.

    Raises:
        OSError: if it cannot be written; says how much space was there. The
            old file is whole then.
    """

    def put(self, obj: bytes, filepath) -> None:
        """Write a file."""
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
                f'{filepath}: expected to write {len(obj) / 2**20:.1f} MiB '
                f'beside the files that are there, got {error.strerror} with '
                f'{_free(folder)} free; make space and go on with --resume, '
                'nothing that was saved before is lost') from error

    def put_text(self, obj: str, filepath, encoding: str = 'utf-8') -> None:
        """Write a text file."""
        self.put(obj.encode(encoding), filepath)


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
