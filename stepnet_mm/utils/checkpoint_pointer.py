"""``last_checkpoint``, the file in a work dir that holds a path."""
import os.path as osp

from ..regular_file import open_regular

#: The file's name; mmengine writes it.
POINTER = 'last_checkpoint'
#: A path is not longer.
_LONGEST = 4096


def read_pointer(work_dir) -> str | None:
    """The path in the file; None if there is no such file.

    Raises:
        ValueError: if it is no file, or holds no path.
        OSError: if it cannot be read now.
    """
    try:
        with open_regular(osp.join(work_dir, POINTER)) as file:
            path = file.read(_LONGEST + 1).decode().strip()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise ValueError(f'it is no text ({error})') from None
    if '\0' in path or not 0 < len(path) < _LONGEST:
        raise ValueError(f'it has no path of a checkpoint, but {path!r:.60}')
    return path
