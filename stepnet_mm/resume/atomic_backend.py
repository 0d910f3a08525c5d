"""Atomic writes of local files, as a backend of mmengine."""
from mmengine.fileio import LocalBackend, register_backend

from ..utils.files import written_whole


@register_backend('atomic_local', force=True)
class AtomicLocalBackend(LocalBackend):
    """mmengine's local backend with atomic writes.

    The content goes to a temporary file, which is flushed to the disk and
    renamed. A kill at any moment leaves the old file or the new one.

    Raises:
        OSError: if the file cannot be written, with the space that it needs.
            The old file stays.
    """

    def put(self, obj: bytes, filepath) -> None:
        """Write a file."""
        try:
            with written_whole(filepath) as file:
                file.write(obj)
        except OSError as error:
            raise OSError(
                error.errno,
                f'{filepath}: expected to write {len(obj) / 2**20:.1f} MiB, '
                f'got {error.strerror}; see to the disk space and rights '
                'there and go on with --resume, no checkpoint was lost'
            ) from error

    def put_text(self, obj: str, filepath, encoding: str = 'utf-8') -> None:
        """Write a text file."""
        self.put(obj.encode(encoding), filepath)
