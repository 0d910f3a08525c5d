import hashlib
import tarfile

import numpy as np
import pytest

from stepnet_mm.datasets.stl10 import read_stl10

LABELS = (1, 10, 3, 1)


def write(folder, split='train'):
    """Write a split as the authors did; returns its images (N, 96, 96, 3)."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(len(split))
    images = rng.integers(0, 256, (len(LABELS), 96, 96, 3), np.uint8)
    stored = images.transpose(0, 3, 2, 1)
    (folder / f'{split}_X.bin').write_bytes(stored.tobytes())
    (folder / f'{split}_y.bin').write_bytes(bytes(LABELS))
    return images


@pytest.mark.parametrize('split', ['train', 'test'])
def test_a_split_is_read(tmp_path, split):
    """Bytes run down the columns of a channel."""
    expected = write(tmp_path, split)
    images, labels = read_stl10(str(tmp_path), split)
    assert images.dtype == np.uint8
    assert np.array_equal(images, expected)
    assert labels == [label - 1 for label in LABELS]
    content = (tmp_path / f'{split}_X.bin').read_bytes()
    for n, row, column, channel in [(0, 0, 1, 0), (1, 1, 0, 2), (3, 7, 95, 1)]:
        place = ((n * 3 + channel) * 96 + column) * 96 + row
        assert images[n, row, column, channel] == content[place]


@pytest.mark.parametrize('name, content, text', [
    ('X', b'', 'expected a multiple of 27648 bytes, .*got 0,'),
    ('X', bytes(3 * 27648 + 1), 'expected a multiple of 27648 bytes, .*got 8'),
    ('X', bytes(3 * 27648), '.*train_y.bin has labels, 4, got 3,'),
    ('X', bytes(5 * 27648), '.*train_y.bin has labels, 4, got 5,'),
    ('y', bytes((1, 0, 11, 200)),
     r'expected labels from 1 to 10, got \[0, 11, 200\]')])
def test_a_damaged_file_is_named(tmp_path, name, content, text):
    write(tmp_path)
    (tmp_path / f'train_{name}.bin').write_bytes(content)
    with pytest.raises(ValueError, match=f'train_{name}.bin: {text}'):
        read_stl10(str(tmp_path), 'train')


@pytest.fixture
def stl10():
    pytest.importorskip('mmpretrain')
    from mmpretrain.registry import DATASETS
    return DATASETS.get('STL10')


@pytest.mark.core
def test_an_item_is_like_one_of_cifar10(tmp_path, stl10):
    images = write(tmp_path / 'stl10_binary', 'test')
    dataset = stl10(data_root=str(tmp_path), split='test', download=False)
    assert len(dataset) == 4
    assert dataset[1].keys() == {'img', 'gt_label', 'sample_idx'}
    assert dataset[1]['gt_label'] == 9 and type(dataset[1]['gt_label']) is int
    assert np.array_equal(dataset[1]['img'], images[1])
    assert dataset[1]['img'].flags.c_contiguous


def test_arguments_of_mmpretrains_datasets(tmp_path, stl10):
    images = write(tmp_path / 'data' / 'stl10_binary')
    dataset = stl10(
        data_root=str(tmp_path),
        data_prefix='data',
        indices=[2, 0],
        metainfo=dict(classes=tuple('abcdefghij')),
        pipeline=[dict(type='Resize', scale=8),
                  dict(type='PackInputs')])
    assert [item['data_samples'].gt_label.item() for item in dataset] == [2, 0]
    assert dataset[0]['inputs'].shape == (3, 8, 8)
    assert np.array_equal(dataset.get_data_info(0)['img'], images[2])
    assert dataset.CLASSES == tuple('abcdefghij')


@pytest.mark.parametrize('main', [True, False])
def test_absent_files_without_a_download(tmp_path, stl10, monkeypatch, main):
    monkeypatch.setattr('mmengine.dist.is_main_process', lambda: main)
    with pytest.raises(
            FileNotFoundError,
            match='stl10_binary/train_X.bin, .*train_y.bin, got no such.*'
            'download=True'):
        stl10(data_root=str(tmp_path), download=False)


def test_another_split_is_refused(tmp_path, stl10):
    with pytest.raises(ValueError, match="or 'test', got 'unlabeled'"):
        stl10(data_root=str(tmp_path), split='unlabeled')


@pytest.fixture
def archive(tmp_path, stl10, monkeypatch):
    """The archive, at an address without a network."""
    write(tmp_path / 'source', 'train')
    write(tmp_path / 'source', 'test')
    path = tmp_path / 'archive.tar.gz'
    with tarfile.open(path, 'w:gz') as tar:
        tar.add(tmp_path / 'source', 'stl10_binary')
    md5 = hashlib.md5(path.read_bytes()).hexdigest()
    monkeypatch.setattr(stl10, 'url', path.as_uri())
    monkeypatch.setattr(stl10, 'tgz_md5', md5)
    return path


@pytest.mark.core
def test_the_archive_is_downloaded_once(tmp_path, stl10, archive):
    root = str(tmp_path / 'root')
    assert len(stl10(data_root=root)) == 4
    archive.unlink()
    (tmp_path / 'root' / 'stl10_binary.tar.gz').unlink()
    assert len(stl10(data_root=root, split='test')) == 4


def test_an_archive_that_is_another_is_refused(tmp_path, stl10, archive,
                                               monkeypatch):
    monkeypatch.setattr(stl10, 'tgz_md5', '0' * 32)
    with pytest.raises(RuntimeError, match='corrupted'):
        stl10(data_root=str(tmp_path / 'root'))
    assert not (tmp_path / 'root' / 'stl10_binary').exists()


def test_only_the_main_process_downloads(tmp_path, stl10, archive,
                                         monkeypatch):
    monkeypatch.setattr('mmengine.dist.is_main_process', lambda: False)
    with pytest.raises(FileNotFoundError, match='train_X.bin'):
        stl10(data_root=str(tmp_path / 'root'))
    assert not (tmp_path / 'root').exists()


@pytest.mark.long
def test_the_others_wait_for_the_download(tmp_path, stl10, archive,
                                          monkeypatch):
    """Files that come while a process waits are read."""
    monkeypatch.setattr('mmengine.dist.is_main_process', lambda: False)
    monkeypatch.setattr('mmengine.dist.barrier',
                        lambda: write(tmp_path / 'root' / 'stl10_binary'))
    assert len(stl10(data_root=str(tmp_path / 'root'))) == 4
