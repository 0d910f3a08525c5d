"""Image loaders that skip broken files in training, or name them."""
import atexit
import functools
import os
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterable

import cv2
from mmcv.transforms import LoadImageFromFile
from mmengine.logging import print_log
from mmengine.registry import TRANSFORMS

#: Errors of the image back ends for bytes that are no complete image.
DECODE_ERRORS = (AssertionError, OSError, SyntaxError, ValueError, cv2.error)
#: If none of the first images decodes, single files are not the reason.
FIRST = 10


class BrokenImage(ValueError):
    """The bytes of an image do not decode."""


class NamingLoader(LoadImageFromFile):
    """mmcv's loader, whose errors name the image.

    Raises:
        BrokenImage: during loading, if the image does not decode.
    """

    def transform(self, results: dict) -> dict | None:
        """The results with the image."""
        try:
            return super().transform(results)
        except DECODE_ERRORS as error:
            if _is_of_machine(error):
                raise
            raise BrokenImage(
                f'{results["img_path"]}: expected an image that decodes, got '
                f'{type(error).__name__} ({" ".join(str(error).split())}); '
                'take another copy of it, or take it out of the dataset'
            ) from error


def _is_of_machine(error: Exception) -> bool:
    """Whether storage failed, or memory was short."""
    if getattr(error, 'code', None) == cv2.Error.StsNoMem:
        return True
    modules = (frame.f_globals.get('__name__', '')
               for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(name.startswith('mmengine.fileio') for name in modules)


@TRANSFORMS.register_module()
class LoadIntactImageFromFile(NamingLoader):
    """mmcv's ``LoadImageFromFile``, which skips broken images in training.

    An image that does not decode is skipped, logged and counted: the dataset
    draws another sample. An absent or unreadable file stays an error.
    ``tools/train.py`` puts this into training pipelines; validation and test
    stop (:func:`name_broken_images`).

    Args:
        **kwargs: those of ``LoadImageFromFile``.

    Raises:
        BrokenImage: during loading, if none of the first images decodes, as
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
        except BrokenImage as error:
            self._failed += 1
            if self._failed == FIRST:
                raise BrokenImage(
                    f'{error}; none of the first {FIRST} decodes, so check '
                    'the files and the arguments of LoadImageFromFile'
                ) from error
            self._note(results['img_path'], error)
            return None
        self._failed = FIRST
        return loaded

    def _note(self, path: str, error: BrokenImage) -> None:
        if path not in _read(self.log):
            print_log(f'an image does not decode and is skipped: {error}',
                      logger='current', level=30)
        with open(self.log, 'a') as log:
            log.write(path + '\n')


def broken_images() -> Counter:
    """How often this process and its workers skipped each broken image."""
    return _read(_log())


def _read(log: str) -> Counter:
    try:
        with open(log) as lines:
            return Counter(lines.read().splitlines())
    except FileNotFoundError:
        return Counter()


@functools.cache
def _log() -> str:
    """A file, as a process and its workers share no memory."""
    handle, path = tempfile.mkstemp(prefix='stepnet_mm_broken_images_')
    os.close(handle)
    atexit.register(_remove, path, os.getpid())
    return path


def _remove(path: str, owner: int) -> None:
    if os.getpid() == owner and os.path.exists(path):
        os.remove(path)


def name_broken_images(dataset) -> None:
    """Make a dataset's errors name the image that does not decode.

    The type in the config stays, since the libraries' inferencers look for
    it.

    Args:
        dataset (Dataset): of any library, also in wrappers; the loaders in
            its pipeline are changed.
    """
    for transform in _transforms(dataset):
        if type(transform) is LoadImageFromFile:
            transform.__class__ = NamingLoader


def _transforms(part) -> Iterable[object]:
    """All transforms inside a dataset, a wrapper, a pipeline or another.

    Each once: a transform may know its dataset.
    """
    found, left = {}, [part]
    while left:
        parts = vars(part) if hasattr(part := left.pop(), '__dict__') else {}
        # With an underscore in what mmengine makes for num_batch_per_epoch.
        for key in ('dataset', '_dataset', 'datasets', 'pipeline',
                    'transforms'):
            inner = parts.get(key, ())
            for child in (inner if isinstance(inner, (list, tuple))
                          else [inner]):
                if id(child) not in found:
                    found[id(child)] = child
                    left.append(child)
    return found.values()
