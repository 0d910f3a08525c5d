import pickle

import cv2
import numpy as np
import pytest

EACH = 2


def pixels(number):
    return np.random.default_rng(0).integers(
        0, 256, (number, 32, 32, 3), np.uint8)


def fill(folder, classes):
    """Two PNG files a class, in the order of the classes."""
    images = pixels(EACH * len(classes))
    for i, image in enumerate(images):
        path = folder / classes[i // EACH] / f'{i % EACH}.png'
        path.parent.mkdir(parents=True, exist_ok=True)
        assert cv2.imwrite(str(path), image[..., ::-1])


#: The label key in the pickles of each dataset.
KEYS = dict(CIFAR10='labels', CIFAR100='fine_labels')


def types_of(name, monkeypatch):
    """Our dataset and its base, for pickles of any content."""
    pytest.importorskip('mmpretrain')
    from mmpretrain.registry import DATASETS
    base = DATASETS.get(name)
    monkeypatch.setattr(base, 'train_list', [['a', None], ['b', None]])
    monkeypatch.setattr(base, 'test_list', [['c', None]])
    return DATASETS.get(f'Folder{name}'), base


@pytest.fixture(params=KEYS)
def types(request, monkeypatch):
    return types_of(request.param, monkeypatch)


@pytest.fixture
def cifar10(monkeypatch):
    return types_of('CIFAR10', monkeypatch)


def pickle_images(root, base):
    """The images of :func:`fill` as the base class reads them."""
    folder = root / base.base_folder
    folder.mkdir(parents=True)
    classes = base.METAINFO['classes']
    images = pixels(EACH * len(classes))
    labels = [i // EACH for i in range(len(images))]
    flat = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
    for name, part in (('a', slice(7)), ('b', slice(7, None)),
                       ('c', slice(3))):
        content = {'data': flat[part], KEYS[base.__name__]: labels[part]}
        (folder / name).write_bytes(pickle.dumps(content))


def assert_equal(found, expected):
    assert len(found) == len(expected) > 0
    assert found.metainfo == expected.metainfo
    for got, wanted in zip(found, expected):
        assert got.keys() == wanted.keys()
        assert np.array_equal(got['img'], wanted['img'])
        assert got['img'].dtype == wanted['img'].dtype
        assert got['gt_label'] == wanted['gt_label']
        assert type(got['gt_label']) is type(wanted['gt_label'])


@pytest.mark.core
def test_a_folder_gives_what_the_pickles_give(tmp_path, types):
    """And pickles what they give the base class."""
    cls, base = types
    fill(tmp_path / 'files/train', base.METAINFO['classes'])
    pickle_images(tmp_path / 'pickles', base)
    pickles = dict(data_root=str(tmp_path / 'pickles'), download=False)
    assert_equal(cls(data_root=str(tmp_path / 'files')), base(**pickles))
    for split in 'train', 'test':
        assert_equal(cls(**pickles, split=split), base(**pickles, split=split))


def test_image_files_of_any_name_and_others_beside_them(tmp_path, cifar10):
    """New class names leave the folders theirs."""
    cls, base = cifar10
    fill(tmp_path / 'train', base.METAINFO['classes'])
    red = np.full((32, 32, 3), (200, 30, 10), np.uint8)
    path = str(tmp_path / 'train/truck/9.JPEG')
    assert cv2.imwrite(path, red[..., ::-1])
    for name in ('truck/Thumbs.db', 'read.me'):
        (tmp_path / 'train' / name).write_text('')
    dataset = cls(data_root=str(tmp_path),
                  metainfo=dict(classes=tuple('abcdefghij')))
    assert len(dataset) == 21 and dataset[20]['gt_label'] == 9
    assert np.abs(dataset[20]['img'].astype(int) - red).max() < 4


@pytest.mark.parametrize('change, text', [
    (lambda folder: folder.rename(folder.with_name('cow')),
     r"none for \['bird'\] and \['cow'\]"),
    (lambda folder: [path.unlink() for path in folder.iterdir()],
     r"none for \['bird'\]")], ids=['renamed', 'empty'])
def test_wrong_class_folders_are_named(tmp_path, cifar10, change, text):
    cls, base = cifar10
    fill(tmp_path / 'train', base.METAINFO['classes'])
    change(tmp_path / 'train/bird')
    with pytest.raises(ValueError, match=text):
        cls(data_root=str(tmp_path))


@pytest.mark.parametrize('name, shape, dtype, share', [
    ('9.jpg', (32, 32, 3), np.uint8, 0), ('9.png', (32, 32, 3), np.uint8, .5),
    ('9.png', (32, 31, 3), np.uint8, 1),
    ('9.png', (32, 32, 3), np.uint16, 1)])
def test_what_is_no_image_of_cifar_is_named(tmp_path, cifar10, name, shape,
                                            dtype, share):
    """It is cut short, or has another size or depth."""
    cls, base = cifar10
    fill(tmp_path / 'train', base.METAINFO['classes'])
    path = tmp_path / 'train/truck' / name
    image = np.random.default_rng(0).integers(0, 256, shape, dtype)
    content = cv2.imencode(path.suffix, image)[1].tobytes()
    path.write_bytes(content[:int(share * len(content))])
    with pytest.raises(ValueError, match=f'^data_root: .*{path}'):
        cls(data_root=str(tmp_path))


def test_neither_folders_nor_pickles_nor_network(cifar10, tmp_path,
                                                 monkeypatch):
    cls, base = cifar10

    def no_network(*args, **kwargs):
        raise OSError('Name or service not known')

    monkeypatch.setattr('mmpretrain.datasets.cifar.'
                        'download_and_extract_archive', no_network)
    for download in (True, False):
        with pytest.raises(FileNotFoundError, match=(
                f'^data_root: expected train/ .*without network .*{base.url}'
                )):
            cls(data_root=str(tmp_path), split='test', download=download)
