import pickle

import cv2
import numpy as np
import pytest
from resume_run import assert_same

EACH = 2


def pixels(number):
    return np.random.default_rng(0).integers(
        0, 256, (number, 32, 32, 3), np.uint8)


def fill(folder, classes):
    """Two PNG files a class, in the order of the classes."""
    for i, image in enumerate(pixels(EACH * len(classes))):
        path = folder / classes[i // EACH] / f'{i % EACH}.png'
        path.parent.mkdir(parents=True, exist_ok=True)
        assert cv2.imwrite(str(path), image[..., ::-1])


@pytest.fixture
def types(monkeypatch):
    """Our dataset and its base, for pickles of any content."""
    from mmpretrain.registry import DATASETS
    base = DATASETS.get('CIFAR10')
    monkeypatch.setattr(base, 'train_list', [['a', None], ['b', None]])
    monkeypatch.setattr(base, 'test_list', [['c', None]])
    return DATASETS.get('FolderCIFAR10'), base


@pytest.fixture
def cifar10(tmp_path, types):
    """The type, whose images are in tmp_path/train."""
    cls, base = types
    fill(tmp_path / 'train', base.METAINFO['classes'])
    return cls


def pickle_images(root, base):
    """The images of :func:`fill` as the base class reads them."""
    folder = root / base.base_folder
    folder.mkdir(parents=True)
    images = pixels(EACH * len(base.METAINFO['classes']))
    labels = [i // EACH for i in range(len(images))]
    flat = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
    for name, part in (('a', slice(7)), ('b', slice(7, None)),
                       ('c', slice(3))):
        content = {'data': flat[part], 'labels': labels[part]}
        (folder / name).write_bytes(pickle.dumps(content))


def assert_equal(found, expected):
    assert len(found) == len(expected) > 0
    assert found.metainfo == expected.metainfo
    assert_same([*found], [*expected])


@pytest.mark.core
def test_a_folder_gives_what_the_pickles_give(tmp_path, types):
    """And pickles what they give the base class."""
    cls, base = types
    fill(tmp_path / 'files/train', base.METAINFO['classes'])
    pickle_images(tmp_path / 'pickles', base)
    pickles = dict(data_root=str(tmp_path / 'pickles'), download=False)
    assert_equal(cls(data_root=str(tmp_path / 'files')), base(**pickles))
    assert_equal(cls(**pickles, split='test'), base(**pickles, split='test'))


def test_jpeg_files_and_others_beside_them(tmp_path, cifar10):
    red = np.full((32, 32, 3), (200, 30, 10), np.uint8)
    assert cv2.imwrite(f'{tmp_path}/train/truck/9.JPEG', red[..., ::-1])
    (tmp_path / 'train/truck/Thumbs.db').write_text('')
    dataset = cifar10(data_root=str(tmp_path))
    assert len(dataset) == 21 and dataset[20]['gt_label'] == 9
    assert np.abs(dataset[20]['img'].astype(int) - red).max() < 4


@pytest.mark.parametrize('shape, dtype, share', [
    ((32, 32, 3), np.uint8, 0), ((32, 32, 3), np.uint8, .5),
    ((32, 31, 3), np.uint8, 1), ((32, 32, 3), np.uint16, 1)])
def test_what_is_no_image_of_cifar_is_named(tmp_path, cifar10, shape, dtype,
                                            share):
    """It is cut short, or has another size or depth."""
    path = tmp_path / 'train/truck/9.png'
    image = np.random.default_rng(0).integers(0, 256, shape, dtype)
    content = cv2.imencode('.png', image)[1].tobytes()
    path.write_bytes(content[:int(share * len(content))])
    with pytest.raises(ValueError, match=f'^data_root: .*{path}'):
        cifar10(data_root=str(tmp_path))
