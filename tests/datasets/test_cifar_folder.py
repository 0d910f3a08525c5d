import pickle

import cv2
import numpy as np
import pytest

from stepnet_mm.datasets.cifar_folder import read_cifar_folder

CLASSES = ('ant', 'bee', 'cow')
EACH = 2


def pixels(number, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (number, 32, 32, 3), np.uint8)


def fill(folder, classes=CLASSES, seed=0):
    """Two PNG files a class; returns the images (H, W, 3) in their order."""
    images = pixels(EACH * len(classes), seed)
    for i, image in enumerate(images):
        path = folder / classes[i // EACH] / f'{i % EACH}.png'
        path.parent.mkdir(parents=True, exist_ok=True)
        assert cv2.imwrite(str(path), image[..., ::-1])
    return images


def test_images_come_in_rgb_by_class_and_name(tmp_path):
    expected = fill(tmp_path)
    red = np.full((32, 32, 3), (200, 30, 10), np.uint8)
    assert cv2.imwrite(str(tmp_path / 'ant/9.JPEG'), red[..., ::-1])
    for name in ('ant/Thumbs.db', 'read.me'):
        (tmp_path / name).write_text('')
    images, labels = read_cifar_folder(str(tmp_path), CLASSES[::-1])
    assert np.array_equal(images[:-1], expected[[4, 5, 2, 3, 0, 1]])
    assert {image.dtype for image in images} == {np.dtype('uint8')}
    assert labels == [0, 0, 1, 1, 2, 2, 2]
    assert np.abs(images[-1].astype(int) - red).max() < 4


@pytest.mark.parametrize('change, text', [
    (lambda folder: (folder / 'bee').rename(folder / 'dog'),
     r"none for \['bee'\] and \['dog'\], which are no classes"),
    (lambda folder: [path.unlink() for path in (folder / 'bee').iterdir()],
     'files ending in .*bee, got none')], ids=['renamed', 'empty'])
def test_wrong_class_folders_are_named(tmp_path, change, text):
    fill(tmp_path)
    change(tmp_path)
    with pytest.raises(ValueError, match=f'^data_root: .*{text}'):
        read_cifar_folder(str(tmp_path), CLASSES)


@pytest.mark.parametrize('name, shape, dtype, share, text', [
    ('9.jpg', (32, 32, 3), np.uint8, 0, 'images that decode'),
    ('9.jpg', (32, 32, 3), np.uint8, .9, 'images that decode'),
    ('9.png', (32, 32, 3), np.uint8, .5, 'images that decode'),
    ('9.png', (32, 31, 3), np.uint8, 1, r'got \(32, 31, 3\) \(uint8\)'),
    ('9.png', (32, 32), np.uint8, 1, r'got \(32, 32\) \(uint8\)'),
    ('9.png', (32, 32, 4), np.uint8, 1, r'got \(32, 32, 4\) \(uint8\)'),
    ('9.png', (32, 32, 3), np.uint16, 1, r'\(32, 32, 3\) \(uint16\)')])
def test_what_is_no_image_of_cifar_is_named(tmp_path, name, shape, dtype,
                                            share, text):
    """It is cut short, or has another size or depth."""
    fill(tmp_path)
    path = tmp_path / 'cow' / name
    image = np.random.default_rng(0).integers(0, 256, shape, dtype)
    content = cv2.imencode(path.suffix, image)[1].tobytes()
    path.write_bytes(content[:int(share * len(content))])
    with pytest.raises(ValueError, match=f'^data_root: .*{text}') as error:
        read_cifar_folder(str(tmp_path), CLASSES)
    assert str(path) in str(error.value)


#: The label key in the pickles of each dataset.
KEYS = dict(CIFAR10='labels', CIFAR100='fine_labels')


@pytest.fixture(params=KEYS)
def types(request, monkeypatch):
    """Our dataset and its base, for pickles of any content."""
    pytest.importorskip('mmpretrain')
    from mmpretrain.registry import DATASETS
    base = DATASETS.get(request.param)
    monkeypatch.setattr(base, 'train_list', [['a', None], ['b', None]])
    monkeypatch.setattr(base, 'test_list', [['c', None]])
    return DATASETS.get(f'Folder{request.param}'), base


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


def fill_both(root, base):
    fill(root / 'train', base.METAINFO['classes'])
    fill(root / 'test', base.METAINFO['classes'], seed=1)


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
    fill_both(tmp_path / 'files', base)
    pickle_images(tmp_path / 'pickles', base)
    pickles = dict(data_root=str(tmp_path / 'pickles'), download=False)
    assert_equal(cls(data_root=str(tmp_path / 'files')), base(**pickles))
    for split in 'train', 'test':
        assert_equal(cls(**pickles, split=split), base(**pickles, split=split))


def test_arguments_of_the_base(tmp_path, types):
    cls, base = types
    fill_both(tmp_path / 'inner', base)
    dataset = cls(
        data_root=str(tmp_path),
        data_prefix='inner',
        split='test',
        indices=[5, 0],
        pipeline=[dict(type='PackInputs')])
    assert [item['data_samples'].gt_label.item() for item in dataset] == [2, 0]
    first = dataset[1]['inputs'].permute(1, 2, 0)
    assert np.array_equal(first, pixels(1, seed=1)[0])


def test_new_class_names_leave_the_folders_theirs(tmp_path, types):
    cls, base = types
    fill_both(tmp_path, base)
    names = tuple(map(str, range(len(base.METAINFO['classes']))))
    dataset = cls(data_root=str(tmp_path), metainfo=dict(classes=names))
    assert dataset.CLASSES == names
    assert dataset[3]['gt_label'] == 1


@pytest.mark.parametrize('present, absent', [('train', 'test'),
                                             ('test', 'train')])
def test_one_split_alone_is_named(tmp_path, types, present, absent):
    (tmp_path / present).mkdir()
    with pytest.raises(FileNotFoundError, match=f'got no .*{absent}; add'):
        types[0](data_root=str(tmp_path))


@pytest.mark.parametrize('download, why', [
    (True, 'not known'), (False, 'Cannot find')])
def test_what_to_do_without_network(types, tmp_path, monkeypatch, download,
                                    why):
    ours, base = types

    def no_network(*args, **kwargs):
        raise OSError('Name or service not known')

    monkeypatch.setattr('mmpretrain.datasets.cifar.'
                        'download_and_extract_archive', no_network)
    with pytest.raises(FileNotFoundError, match=(
            f'^data_root: expected train/ .*{base.base_folder}, in {tmp_path}'
            f'.*{why}.*without network .*{base.url}.*--data-root')):
        ours(data_root=str(tmp_path), split='test', download=download)
