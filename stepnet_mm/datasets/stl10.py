"""Reads the official binary files of STL-10."""
import numpy as np
from mmengine.fileio import exists, get, join_path

#: One image in the file, uint8: RGB channels, columns, rows.
STORED = (3, 96, 96)
IMAGE_BYTES = int(np.prod(STORED))
NUM_CLASSES = 10


def absent_files(folder: str, split: str) -> list[str]:
    """Paths of the absent files of a split (train or test)."""
    return [path for path in _paths(folder, split) if not exists(path)]


def read_stl10(folder: str, split: str) -> tuple:
    """Read the images and labels of a split.

    Args:
        folder (str): the folder ``stl10_binary``.
        split (str): train (5,000 images) or test (8,000).

    Returns:
        tuple[np.ndarray, list[int]]: images (N, 96, 96, 3), RGB, uint8, and
        N labels from 0.

    Raises:
        ValueError: on a damaged file, which is named.
    """
    image_path, label_path = _paths(folder, split)
    images, labels = _read_images(image_path), _read_labels(label_path)
    if len(images) != len(labels):
        raise ValueError(
            f'{image_path}: expected as many images as {label_path} has '
            f'labels, {len(labels)}, got {len(images)}, so one of them is cut '
            'short; unpack the archive again')
    return images, labels


def _paths(folder: str, split: str) -> tuple:
    return tuple(join_path(folder, f'{split}_{part}.bin') for part in 'Xy')


def _read_images(path: str) -> np.ndarray:
    content = get(path)
    if not content or len(content) % IMAGE_BYTES:
        raise ValueError(
            f'{path}: expected a multiple of {IMAGE_BYTES} bytes, the size of '
            f'one image, got {len(content)}, so it is cut short or no file of '
            'STL-10; unpack the archive again')
    stored = np.frombuffer(content, np.uint8).reshape(-1, *STORED)
    return np.ascontiguousarray(stored.transpose(0, 3, 2, 1))


def _read_labels(path: str) -> list[int]:
    labels = np.frombuffer(get(path), np.uint8)
    wrong = np.setdiff1d(labels, np.arange(1, NUM_CLASSES + 1)).tolist()
    if wrong:
        raise ValueError(
            f'{path}: expected labels from 1 to {NUM_CLASSES}, got {wrong}, '
            'so it is no label file of STL-10; unpack the archive again')
    return (labels.astype(int) - 1).tolist()
