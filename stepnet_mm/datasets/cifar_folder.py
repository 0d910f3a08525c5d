"""Reads CIFAR from image files, a folder per class."""
import os
import os.path as osp

import cv2
import numpy as np

SUFFIXES = ('.jpg', '.jpeg', '.png')
SHAPE = (32, 32, 3)


def is_cifar_folder(root: str) -> bool:
    """Whether a folder holds ``train/`` and ``test/``.

    Raises:
        FileNotFoundError: if it holds only one of them.
    """
    absent = [
        folder for folder in (osp.join(root, 'train'), osp.join(root, 'test'))
        if not osp.isdir(folder)
    ]
    if len(absent) == 1:
        raise FileNotFoundError(
            'data_root: expected both train/ and test/ with one folder per '
            f'class, or neither, got no {absent[0]}; add it, or rename the '
            'other (then the pickles are read)')
    return not absent


def read_cifar_folder(folder: str, classes: tuple) -> tuple:
    """Read all images of a split, sorted by class and file name.

    Args:
        folder (str): the split's folder, with one folder per class.
        classes (tuple[str]): the names of the class folders.

    Returns:
        tuple[list[np.ndarray], list[int]]: N images (32, 32, 3), RGB, uint8,
        and N labels, the indices in ``classes``.

    Raises:
        ValueError: if class folders are missing, unknown or empty, or a file
            is no image of that size; they are named.
    """
    _check_folders(folder, classes)
    files = [(path, label) for label, name in enumerate(classes)
             for path in _image_files(osp.join(folder, name))]
    return [_read(path) for path, _ in files], [label for _, label in files]


def _check_folders(folder: str, classes: tuple) -> None:
    found = {entry.name for entry in os.scandir(folder) if entry.is_dir()}
    missing, unknown = set(classes) - found, found - set(classes)
    if missing or unknown:
        raise ValueError(
            f'data_root: expected one folder in {folder} for each of the '
            f'{len(classes)} classes of this dataset, got none for '
            f'{sorted(missing)} and {sorted(unknown)}, which are no classes')


def _image_files(folder: str) -> list[str]:
    names = [n for n in os.listdir(folder) if n.lower().endswith(SUFFIXES)]
    if not names:
        raise ValueError(
            f'data_root: expected files ending in {", ".join(SUFFIXES)} in '
            f'the class folder {folder}, got none')
    return [osp.join(folder, name) for name in sorted(names)]


def _read(path: str) -> np.ndarray:
    # From memory, since cv2.imread may invent the rest of a truncated file;
    # unchanged, since other flags convert grey and 16-bit images to RGB.
    content = np.fromfile(path, np.uint8)
    image = None
    if len(content):
        image = cv2.imdecode(content, cv2.IMREAD_UNCHANGED)
    if image is None:
        raise ValueError(
            f'data_root: expected images that decode, got {path}, which does '
            'not; take another copy of it')
    if image.shape != SHAPE or image.dtype != np.uint8:
        raise ValueError(
            f'data_root: expected images of shape {SHAPE} (uint8), got '
            f'{image.shape} ({image.dtype}) in {path}')
    return cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
