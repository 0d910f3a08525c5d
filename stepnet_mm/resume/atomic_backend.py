"""Atomic writes of local files, as a backend of mmengine."""
import errno
import os.path as osp
import shutil

from mmengine.fileio import LocalBackend, register_backend

from ..utils.files import written_whole

#: The errors of a full disk or quota.
_FULL = (errno.ENOSPC, errno.EDQUOT)


@register_backend('atomic_local', force=True)
class AtomicLocalBackend(LocalBackend):
    """mmengine's local backend with atomic writes.

    The content goes to a temporary file, which is flushed to the disk and
    renamed. A kill at any moment leaves the old file or the new one.

    Raises:
        OSError: if the file cannot be written, with the free space. The old
            file stays.
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
