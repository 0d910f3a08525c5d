"""An image loader that passes over broken files in training."""
import atexit
import os
import tempfile
from collections import Counter

import cv2
from mmcv.transforms import LoadImageFromFile
from mmengine.logging import print_log
from mmengine.registry import TRANSFORMS

#: What the image back ends raise for bytes that are no whole image.
DECODE_ERRORS = (AssertionError, OSError, SyntaxError, ValueError, cv2.error)

_logs: list[str] = []


@TRANSFORMS.register_module()
class LoadIntactImageFromFile(LoadImageFromFile):
    """mmcv's ``LoadImageFromFile`` for training on files that may be broken.

    An image that does not decode is passed over, logged and counted: the
    dataset draws another sample in its place. A file that is absent or cannot
    be read stays an error. ``tools/train.py`` puts this into training
    pipelines; in a test the library's own loader stops and names the file.

    Args:
        **kwargs: those of ``LoadImageFromFile``.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        # Worker processes append to a file, since memory of theirs does not
        # come back; its path survives a fork, a spawn and a deepcopy.
        self.log = _new_log()

    def transform(self, results: dict) -> dict | None:
        """The results with the image; None where it does not decode."""
        try:
            return super().transform(results)
        except DECODE_ERRORS as error:
            if getattr(error, 'errno', None) is not None:
                raise  # the file system's error, not the decoder's
            self._note(results['img_path'])
            return None

    def _note(self, path: str) -> None:
        if path not in _read(self.log):
            print_log(
                f'image {path} does not decode and is skipped',
                logger='current',
                level=30)
        with open(self.log, 'a') as log:
            log.write(path + '\n')


def broken_images() -> Counter:
    """How often this process and its workers skipped each broken image."""
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
