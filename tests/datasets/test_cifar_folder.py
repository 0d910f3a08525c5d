import pickle

import cv2
import numpy as np
import pytest
from drawn_cifar import draw_cifar
from mmpretrain.registry import DATASETS
from resume_run import assert_same


@pytest.fixture
def base(monkeypatch):
    """The base of our dataset, for pickles of any content."""
    base = DATASETS.get('CIFAR10')
    monkeypatch.setattr(base, 'train_list', [['a', None], ['b', None]])
    monkeypatch.setattr(base, 'test_list', [['c', None]])
    return base


@pytest.fixture
def cifar10(tmp_path):
    """Our dataset, whose images are in tmp_path/train."""
    draw_cifar(tmp_path, 2, 0)
    return DATASETS.get('FolderCIFAR10')


def pickle_images(files, root, base):
    """Two image files a class as the base class reads them."""
    folder = root / base.base_folder
    folder.mkdir(parents=True)
    images = np.array([
        cv2.imread(f'{files}/{name}/{i}.png')[..., ::-1]
        for name in base.METAINFO['classes'] for i in range(2)])
    labels = [i // 2 for i in range(len(images))]
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
def test_a_folder_gives_what_the_pickles_give(tmp_path, cifar10, base):
    """And pickles what they give the base class."""
    pickle_images(tmp_path / 'train', tmp_path / 'pickles', base)
    pickles = dict(data_root=str(tmp_path / 'pickles'), download=False)
    assert_equal(cifar10(data_root=str(tmp_path)), base(**pickles))
    pickles['split'] = 'test'
    assert_equal(cifar10(**pickles), base(**pickles))


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
