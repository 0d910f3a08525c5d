import pickle
import re

import cv2
import numpy as np
import pytest

from stepnet_mm.datasets.cifar_folder import is_cifar_folder, read_cifar_folder

CLASSES = ('ant', 'bee', 'cow')
EACH = 2


def pixels(number, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (number, 32, 32, 3), np.uint8)


def save(path, image):
    """Write an image (H, W, 3) in RGB."""
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), image[..., ::-1])


def fill(folder, classes=CLASSES, seed=0):
    """Two PNG files a class; returns the images in their order."""
    images = pixels(EACH * len(classes), seed)
    for i, image in enumerate(images):
        save(folder / classes[i // EACH] / f'{i % EACH}.png', image)
    return images


def expect(folder, *parts):
    pattern = '.*'.join(re.escape(str(part)) for part in parts)
    with pytest.raises(ValueError, match=pattern):
        read_cifar_folder(str(folder), CLASSES)


def test_images_come_in_rgb_by_class_and_name(tmp_path):
    expected = fill(tmp_path)
    images, labels = read_cifar_folder(str(tmp_path), CLASSES)
    assert np.array_equal(images, expected)
    assert {image.dtype for image in images} == {np.dtype('uint8')}
    assert labels == [0, 0, 1, 1, 2, 2]


def test_labels_are_the_places_of_the_classes(tmp_path):
    expected = fill(tmp_path)
    images, labels = read_cifar_folder(str(tmp_path), CLASSES[::-1])
    assert np.array_equal(images, expected[[4, 5, 2, 3, 0, 1]])
    assert labels == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize('suffix', ['.jpg', '.JPEG'])
def test_jpeg_is_read_in_rgb(tmp_path, suffix):
    fill(tmp_path)
    red = np.full((32, 32, 3), (200, 30, 10), np.uint8)
    save(tmp_path / f'ant/9{suffix}', red)
    images, labels = read_cifar_folder(str(tmp_path), CLASSES)
    assert labels == [0, 0, 0, 1, 1, 2, 2]
    assert np.abs(images[2].astype(int) - red).max() < 4


def test_other_files_are_passed_over(tmp_path):
    fill(tmp_path)
    (tmp_path / 'ant' / 'Thumbs.db').write_text('')
    (tmp_path / 'read.me').write_text('')
    assert len(read_cifar_folder(str(tmp_path), CLASSES)[0]) == 6


def test_missing_and_unknown_folders_are_named(tmp_path):
    fill(tmp_path, ('ant', 'dog', 'eel'))
    expect(tmp_path, 'data_root', tmp_path, "none for ['bee', 'cow']",
           "['dog', 'eel'], which are no classes")


def test_an_empty_class_folder_is_named(tmp_path):
    fill(tmp_path)
    for path in (tmp_path / 'bee').iterdir():
        path.rename(path.with_suffix('.bmp'))
    expect(tmp_path, '.png', tmp_path / 'bee', 'got none')


@pytest.mark.parametrize('suffix, share', [
    ('.jpg', 0), ('.jpg', .9), ('.png', .5)])
def test_a_file_that_is_cut_short_is_named(tmp_path, share, suffix):
    fill(tmp_path)
    path = tmp_path / 'cow' / f'9{suffix}'
    save(path, pixels(1)[0])
    content = path.read_bytes()
    path.write_bytes(content[:int(share * len(content))])
    expect(tmp_path, 'expected images that decode', path)


@pytest.mark.parametrize('image, got', [
    (np.zeros((32, 31, 3), np.uint8), '(32, 31, 3) (uint8)'),
    (np.zeros((32, 32), np.uint8), '(32, 32) (uint8)'),
    (np.zeros((32, 32, 4), np.uint8), '(32, 32, 4) (uint8)'),
    (np.zeros((32, 32, 3), np.uint16), '(32, 32, 3) (uint16)'),
])
def test_another_size_or_depth_is_named(tmp_path, image, got):
    fill(tmp_path)
    cv2.imwrite(str(tmp_path / 'cow/9.png'), image)
    expect(tmp_path, '(32, 32, 3) (uint8)', got, tmp_path / 'cow/9.png')


def test_both_splits_make_a_folder(tmp_path):
    assert not is_cifar_folder(str(tmp_path))
    for name in ('train', 'test'):
        (tmp_path / name).mkdir()
    assert is_cifar_folder(str(tmp_path))


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


@pytest.mark.long
@pytest.mark.core
def test_a_folder_gives_what_the_pickles_give(tmp_path, types):
    cls, base = types
    fill_both(tmp_path / 'files', base)
    pickle_images(tmp_path / 'pickles', base)
    assert_equal(
        cls(data_root=str(tmp_path / 'files')),
        base(data_root=str(tmp_path / 'pickles')))


@pytest.mark.parametrize('split, number', [('train', None), ('test', 3)])
def test_pickles_are_read_as_by_the_base(tmp_path, types, split, number):
    cls, base = types
    pickle_images(tmp_path, base)
    arguments = dict(data_root=str(tmp_path), split=split, download=False)
    found = cls(**arguments)
    assert_equal(found, base(**arguments))
    assert number is None or len(found) == number


def test_the_split_is_the_folder(tmp_path, types):
    cls, base = types
    fill_both(tmp_path, base)
    dataset = cls(data_root=str(tmp_path), split='test', test_mode=True)
    assert np.array_equal(dataset[0]['img'], pixels(1, seed=1)[0])


def test_arguments_of_the_base(tmp_path, types):
    cls, base = types
    fill_both(tmp_path / 'inner', base)
    dataset = cls(
        data_root=str(tmp_path),
        data_prefix='inner',
        indices=[5, 0],
        pipeline=[dict(type='PackInputs')])
    assert [item['data_samples'].gt_label.item() for item in dataset] == [2, 0]
    assert dataset[1]['inputs'].shape == (3, 32, 32)


def test_new_class_names_leave_the_folders_theirs(tmp_path, types):
    cls, base = types
    fill_both(tmp_path, base)
    names = tuple(map(str, range(len(base.METAINFO['classes']))))
    dataset = cls(data_root=str(tmp_path), metainfo=dict(classes=names))
    assert dataset.CLASSES == names
    assert dataset[3]['gt_label'] == 1


def test_no_folder_and_no_pickles(tmp_path, types):
    cls, base = types
    with pytest.raises(FileNotFoundError,
                       match=f'got neither .*Cannot find {cls.__name__}'):
        cls(data_root=str(tmp_path), download=False)


@pytest.mark.parametrize('present, absent', [('train', 'test'),
                                             ('test', 'train')])
def test_one_split_alone_is_named(tmp_path, types, present, absent):
    (tmp_path / present).mkdir()
    with pytest.raises(FileNotFoundError, match=f'got no .*{absent}; add'):
        types[0](data_root=str(tmp_path))


def test_what_to_do_without_network(types, tmp_path, monkeypatch):
    ours, base = types

    def no_network(*args, **kwargs):
        raise OSError('Name or service not known')

    monkeypatch.setattr('mmpretrain.datasets.cifar.'
                        'download_and_extract_archive', no_network)
    with pytest.raises(FileNotFoundError) as error:
        ours(data_root=str(tmp_path), split='test')
    for part in ('data_root: expected train/ and test/', base.base_folder,
                 str(tmp_path), 'not known', 'without network', base.url,
                 '--data-root'):
        assert part in str(error.value)
