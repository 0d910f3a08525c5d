"""An image loader that skips broken files in training."""
import atexit
import functools
import json
import os
import tempfile
import traceback
from collections import Counter
from pathlib import Path

import cv2
from mmcv.transforms import LoadImageFromFile
from mmengine.logging import print_log
from mmengine.registry import TRANSFORMS

from ..utils.data_errors import in_a_line

#: Errors of the image back ends for bytes that are no complete image.
DECODE_ERRORS = (AssertionError, OSError, SyntaxError, ValueError, cv2.error)
#: If none of the first images decodes, single files are not the reason.
FIRST = 10


def _is_of_machine(error: Exception) -> bool:
    """Whether storage failed, or memory was short."""
    if getattr(error, 'code', None) == cv2.Error.StsNoMem:
        return True
    modules = (frame.f_globals.get('__name__', '')
               for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(name.startswith('mmengine.fileio') for name in modules)


@TRANSFORMS.register_module()
class LoadIntactImageFromFile(LoadImageFromFile):
    """mmcv's ``LoadImageFromFile``, which skips broken images in training.

    An image that does not decode is skipped, logged and counted: the dataset
    draws another sample. An absent or unreadable file stays an error.
    ``tools/train.py`` puts this into training pipelines; validation and test
    stop. Takes the arguments of ``LoadImageFromFile``.

    Raises:
        ValueError: during loading, if none of the first images decodes, as
            with wrong arguments.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.log = _log()  # a path survives a fork, a spawn and a deepcopy
        self._failed = 0  # images, until the first that decodes

    def transform(self, results: dict) -> dict | None:
        """The results with the image; None if it does not decode."""
        try:
            loaded = super().transform(results)
        except DECODE_ERRORS as error:
            if _is_of_machine(error):
                raise
            self._failed += 1
            if self._failed == FIRST:
                raise ValueError(
                    f'expected images, got {FIRST} and none that decodes '
                    f'({error}); check them and the arguments of '
                    'LoadImageFromFile') from error
            self._note(str(results['img_path']), error)
            return None
        self._failed = FIRST
        return loaded

    def _note(self, path: str, error: Exception) -> None:
        if path not in _read(self.log):
            reason = ' '.join(str(error).split())
            print_log(
                in_a_line(
                    f'an image does not decode and is skipped: {path}: '
                    f'{type(error).__name__}: {reason}'),
                logger='current', level=30)
        with open(self.log, 'a') as log:
            log.write(json.dumps(path) + '\n')  # ASCII, whatever the name


def broken_images() -> Counter:
    """How often this process and its workers skipped each broken image."""
    return _read(_log())


def _read(log: str) -> Counter:
    try:
        with open(log) as lines:
            return Counter(map(json.loads, lines))
    except FileNotFoundError:
        return Counter()


@functools.cache
def _log() -> str:
    """A file, as a process and its workers share no memory."""
    handle, path = tempfile.mkstemp(prefix='stepnet_mm_broken_images_')
    os.close(handle)
    atexit.register(Path(path).unlink, missing_ok=True)
    return path
