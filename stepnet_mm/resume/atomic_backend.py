"""Local files that are whole or not there, as a backend of mmengine."""
import errno
import os.path as osp
import shutil

from mmengine.fileio import LocalBackend, register_backend

from ..utils.files import written_whole

#: What the system says where there is no space.
_FULL = (errno.ENOSPC, errno.EDQUOT)


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
        try:
            with written_whole(filepath) as file:
                file.write(obj)
        except OSError as error:
            advice = ('make space' if error.errno in _FULL else
                      'see that this is a file, in a folder that takes one,')
            raise OSError(
                error.errno,
                f'{filepath}: expected to write {len(obj) / 2**20:.1f} MiB '
                f'beside the files that are there, got {error.strerror} with '
                f'{_free(filepath)} free; {advice} and go on with --resume, '
                'nothing that was saved before is lost') from error

    def put_text(self, obj: str, filepath, encoding: str = 'utf-8') -> None:
        """Write a text file."""
        self.put(obj.encode(encoding), filepath)


def _free(path: str) -> str:
    folder = osp.dirname(osp.abspath(path))
    while not osp.isdir(folder):
        folder = osp.dirname(folder)
    return f'{shutil.disk_usage(folder).free / 2**20:.1f} MiB'
