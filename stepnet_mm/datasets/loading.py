"""An image loader that names a broken file, and skips it in training."""
import atexit
import os
import tempfile
from collections import Counter
from typing import Optional

from mmcv.transforms import LoadImageFromFile
from mmengine.logging import print_log
from mmengine.registry import TRANSFORMS

_logs = []


@TRANSFORMS.register_module()
class LoadIntactImageFromFile(LoadImageFromFile):
    """mmcv's ``LoadImageFromFile`` for files that may be cut off.

    A broken image is an error that names the file, or, with
    ``skip_broken``, one that is passed over: the dataset then draws another
    sample in its place. ``tools/train.py`` puts it into training pipelines
    with and into the others without ``skip_broken``.

    Args:
        skip_broken (bool): pass over files that do not decode. Defaults to
            False.
        **kwargs: those of ``LoadImageFromFile``.

    Raises:
        ValueError: for a broken file, unless ``skip_broken``.
    """

    def __init__(self, skip_broken: bool = False, **kwargs):
        super().__init__(**kwargs)
        self.skip_broken = skip_broken
        # Worker processes append to a file, since memory of theirs does not
        # come back; its path survives a fork, a spawn and a deepcopy.
        self.log = _new_log() if skip_broken else None

    def transform(self, results: dict) -> Optional[dict]:
        try:
            return super().transform(results)
        except (FileNotFoundError, PermissionError):
            raise
        except Exception as error:
            path = results['img_path']
            if not self.skip_broken:
                raise ValueError(
                    f'image {path} does not decode (it is cut off or no '
                    f'image): {type(error).__name__}: {error}') from error
            if path not in _read(self.log):
                print_log(
                    f'image {path} does not decode and is skipped',
                    logger='current',
                    level=30)
            with open(self.log, 'a') as log:
                log.write(path + '\n')
            return None


def broken_images() -> Counter:
    """How often each broken image was skipped, in this process' workers."""
    return sum((_read(log) for log in _logs), Counter())


def _read(log: str) -> Counter:
    with open(log) as lines:
        return Counter(lines.read().splitlines())


def _new_log() -> str:
    handle, path = tempfile.mkstemp(prefix='stepnet_mm_broken_images_')
    os.close(handle)
    atexit.register(_remove, path, os.getpid())
    _logs.append(path)
    return path


def _remove(path: str, owner: int) -> None:
    if os.getpid() == owner and os.path.exists(path):
        os.remove(path)
