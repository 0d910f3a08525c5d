"""STL-10, and CIFAR from image files, as datasets of mmpretrain."""
import os.path as osp

import mmengine.dist as dist
from mmengine.fileio import LocalBackend, get_file_backend, join_path
from mmpretrain.datasets import CIFAR10, CIFAR100
from mmpretrain.datasets.utils import download_and_extract_archive
from mmpretrain.registry import DATASETS

from .cifar_folder import is_cifar_folder, read_cifar_folder
from .stl10 import absent_files, read_stl10


def _data_list(images, labels) -> list[dict]:
    """The data list of mmpretrain's CIFAR, of images (N, H, W, 3)."""
    return [
        dict(img=image, gt_label=label)
        for image, label in zip(images, labels)
    ]


@DATASETS.register_module()
class STL10(CIFAR10):
    """`STL-10 <https://cs.stanford.edu/~acoates/stl10>`_, labelled images.

    Reads ``train_X.bin``, ``train_y.bin``, ``test_X.bin`` and ``test_y.bin``
    in ``<data_root>/stl10_binary``: 96 x 96 px RGB, 5,000 training and 8,000
    test images. If they are absent, the main process downloads the archive
    (2.6 GB) and unpacks it into ``data_root``.

    Args:
        data_root (str): the folder that holds ``stl10_binary``.
        split (str): train or test.
        **kwargs: those of :class:`mmpretrain.datasets.CIFAR10`, such as
            ``download``, ``pipeline`` and ``indices``.

    Raises:
        FileNotFoundError: if files are absent after any download.
        ValueError: on another ``split`` or a damaged file.
    """

    base_folder = 'stl10_binary'
    url = 'http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz'
    filename = 'stl10_binary.tar.gz'
    tgz_md5 = '91f7769df0f17e558f3565bffb0c7dfb'
    METAINFO = dict(
        classes=('airplane', 'bird', 'car', 'cat', 'deer', 'dog', 'horse',
                 'monkey', 'ship', 'truck'))

    def __init__(self, data_root: str = '', split: str = 'train', **kwargs):
        if split not in ('train', 'test'):
            raise ValueError(
                f"split: expected 'train' or 'test', got {split!r}")
        super().__init__(data_root, split, **kwargs)

    def load_data_list(self) -> list[dict]:
        """Images (96, 96, 3) and labels from 0, downloaded where absent."""
        root = self.data_prefix['root']
        folder = join_path(root, self.base_folder)
        if (self.download and dist.is_main_process()
                and absent_files(folder, self.split)
                and isinstance(get_file_backend(root), LocalBackend)):
            download_and_extract_archive(
                self.url, root, filename=self.filename, md5=self.tgz_md5)
        dist.barrier()
        absent = absent_files(folder, self.split)
        if absent:
            raise FileNotFoundError(
                f'data_root: expected {", ".join(absent)}, got no such files; '
                "set the dataset's data_root to the folder that holds "
                f'{self.base_folder}, or download=True, or unpack {self.url} '
                'there')
        return _data_list(*read_stl10(folder, self.split))


class _FolderCIFAR(CIFAR10):
    """Reads image files if there are any, else the pickles."""

    def load_data_list(self) -> list[dict]:
        """Images (32, 32, 3) and labels; sorted by class, then by name."""
        root = self.data_prefix['root']
        if not is_cifar_folder(root):
            return self._read_pickles(root)
        return _data_list(*read_cifar_folder(
            osp.join(root, self.split), self.METAINFO['classes']))

    def _read_pickles(self, root: str) -> list[dict]:
        try:
            return super().load_data_list()
        except (AssertionError, OSError, RuntimeError) as error:
            raise FileNotFoundError(
                f'data_root: expected train/ and test/ with images, or the '
                f'pickles of {self.base_folder}, in {root}, got neither and '
                f'no download ({error}); without network put the unpacked '
                f'{self.url} there, or name its folder with --data-root'
            ) from error


@DATASETS.register_module()
class FolderCIFAR10(_FolderCIFAR):
    """CIFAR-10 from JPEG or PNG files, ``<split>/<class>/<any name>``.

    All are decoded at once. If ``data_root`` has no ``train/`` and
    ``test/``, the pickles are read (and downloaded) as by ``CIFAR10``. The
    images are sorted by class: ``indices`` of a subset must be spread.

    Args:
        **kwargs: those of :class:`mmpretrain.datasets.CIFAR10`.

    Raises:
        ValueError: if class folders are missing, unknown or empty, or a file
            is no image of 32 x 32 px in RGB.
    """


@DATASETS.register_module()
class FolderCIFAR100(_FolderCIFAR, CIFAR100):
    """CIFAR-100 from image files; see :class:`FolderCIFAR10`.

    Args:
        **kwargs: those of :class:`mmpretrain.datasets.CIFAR100`.
    """
