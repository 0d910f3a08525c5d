"""STL-10, and CIFAR from image files, as datasets of mmpretrain."""
from pathlib import Path

import cv2
import numpy as np
from mmengine.fileio import exists, get, join_path
from mmpretrain.datasets import CIFAR10, CIFAR100
from mmpretrain.registry import DATASETS

#: One image in the files of STL-10, uint8: RGB channels, columns, rows.
STL10_STORED = (3, 96, 96)
STL10_CLASSES = ('airplane', 'bird', 'car', 'cat', 'deer', 'dog', 'horse',
                 'monkey', 'ship', 'truck')
#: Image files of CIFAR.
CIFAR_SUFFIXES = ('.jpg', '.jpeg', '.png')
CIFAR_SHAPE = (32, 32, 3)


@DATASETS.register_module()
class STL10(CIFAR10):
    """`STL-10 <https://cs.stanford.edu/~acoates/stl10>`_, labelled images.

    Reads ``train_X.bin``, ``train_y.bin``, ``test_X.bin`` and ``test_y.bin``
    in ``<data_root>/stl10_binary``: 96 x 96 px RGB, 5,000 training and 8,000
    test images. The archive (2.6 GB) is not downloaded.

    Args:
        data_root (str): the folder that holds ``stl10_binary``.
        split (str): train or test.
        **kwargs: those of :class:`mmpretrain.datasets.CIFAR10`, such as
            ``pipeline`` and ``indices``.

    Raises:
        FileNotFoundError: if files are absent.
        ValueError: on a damaged file.
    """

    base_folder = 'stl10_binary'
    url = 'http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz'
    METAINFO = dict(classes=STL10_CLASSES)

    def load_data_list(self) -> list[dict]:
        """Images (96, 96, 3) and labels from 0."""
        paths = [join_path(self.data_prefix['root'], self.base_folder,
                           f'{self.split}_{part}.bin') for part in 'Xy']
        absent = [path for path in paths if not exists(path)]
        if absent:
            raise FileNotFoundError(
                f'data_root: expected {", ".join(absent)}, got no such files; '
                "set the dataset's data_root to the folder that holds "
                f'{self.base_folder}, or unpack {self.url} there')
        return _read_stl10(*paths)


class _FolderCIFAR(CIFAR10):
    """Reads image files if there are any, else the pickles."""

    def load_data_list(self) -> list[dict]:
        """Images (32, 32, 3) and labels; sorted by class, then by name."""
        root = Path(self.data_prefix['root'])
        if not any((root / split).is_dir() for split in ('train', 'test')):
            return super().load_data_list()
        return [dict(img=_read_image(path), gt_label=label)
                for label, name in enumerate(self.METAINFO['classes'])
                for path in _image_files(root / self.split / name)]


@DATASETS.register_module()
class FolderCIFAR10(_FolderCIFAR):
    """CIFAR-10 from JPEG or PNG files, ``<split>/<class>/<any name>``.

    All are decoded at once. If ``data_root`` has neither ``train/`` nor
    ``test/``, the pickles are read (and downloaded) as by ``CIFAR10``. The
    images are sorted by class: ``indices`` of a subset must be spread.

    Args:
        **kwargs: those of :class:`mmpretrain.datasets.CIFAR10`.

    Raises:
        ValueError: if class folders are missing or empty, or a file is no
            image of 32 x 32 px in RGB.
    """


@DATASETS.register_module()
class FolderCIFAR100(_FolderCIFAR, CIFAR100):
    """CIFAR-100 from image files; see :class:`FolderCIFAR10`."""


def _read_stl10(image_path: str, label_path: str) -> list[dict]:
    """Images (96, 96, 3), RGB, uint8, and labels from 0."""
    content = get(image_path)
    labels = np.frombuffer(get(label_path), np.uint8)
    size = int(np.prod(STL10_STORED))
    if (not content or len(content) != len(labels) * size
            or not set(labels.tolist()) <= {*range(1, 11)}):
        raise ValueError(
            f'{image_path}: expected {size} bytes for each label in '
            f'{label_path}, from 1 to 10, got {len(content)} bytes and '
            f'{len(labels)} labels, {sorted(set(labels.tolist()))}; unpack '
            'the archive again')
    stored = np.frombuffer(content, np.uint8).reshape(-1, *STL10_STORED)
    images = np.ascontiguousarray(stored.transpose(0, 3, 2, 1))
    return [dict(img=image, gt_label=label - 1)
            for image, label in zip(images, labels.tolist())]


def _image_files(folder: Path) -> list[Path]:
    """The image files of a class, by name."""
    paths = sorted(path for path in folder.glob('*')
                   if path.suffix.lower() in CIFAR_SUFFIXES)
    if not paths:
        raise ValueError(
            f'data_root: expected files in {folder} ending in '
            f'{", ".join(CIFAR_SUFFIXES)}, got none; add that class')
    return paths


def _read_image(path: Path) -> np.ndarray:
    """An image of CIFAR, (32, 32, 3), RGB, uint8."""
    # From memory, since cv2.imread may invent the rest of a truncated file;
    # unchanged, since other flags convert grey and 16-bit images to RGB.
    content = np.fromfile(path, np.uint8)
    image = (cv2.imdecode(content, cv2.IMREAD_UNCHANGED)
             if len(content) else None)
    if image is None or (image.shape, image.dtype) != (CIFAR_SHAPE, np.uint8):
        raise ValueError(
            f'data_root: expected images of shape {CIFAR_SHAPE} (uint8) that '
            f'decode, got {path}, which is none; take another copy of it')
    return cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
