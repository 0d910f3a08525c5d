import numpy as np
import pytest
from mmpretrain.registry import DATASETS

STL10 = DATASETS.get('STL10')
LABELS = (1, 10, 3, 1)


def write(root, split='train'):
    """Write a split as the authors did; returns its images (N, 96, 96, 3)."""
    folder = root / 'stl10_binary'
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(len(split))
    images = rng.integers(0, 256, (len(LABELS), 96, 96, 3), np.uint8)
    stored = images.transpose(0, 3, 2, 1)
    (folder / f'{split}_X.bin').write_bytes(stored.tobytes())
    (folder / f'{split}_y.bin').write_bytes(bytes(LABELS))
    return images


@pytest.mark.core
def test_an_item_is_like_one_of_cifar10(tmp_path):
    """Bytes run down the columns of a channel."""
    write(tmp_path)
    images = write(tmp_path, 'test')
    dataset = STL10(data_root=str(tmp_path), split='test')
    assert [item['gt_label'] for item in dataset] == [0, 9, 2, 0]
    assert dataset[1].keys() == {'img', 'gt_label', 'sample_idx'}
    assert type(dataset[1]['gt_label']) is int
    assert dataset[1]['img'].flags.c_contiguous
    for item, image in zip(dataset, images):
        assert item['img'].dtype == np.uint8
        assert np.array_equal(item['img'], image)


@pytest.mark.parametrize('name, size, error', [
    ('X', None, FileNotFoundError), ('X', 3 * 27648, ValueError),
    ('y', 4, ValueError)])
def test_an_absent_or_damaged_file_is_named(tmp_path, name, size, error):
    """Of labels zeros; size None: it is not there."""
    write(tmp_path)
    path = tmp_path / f'stl10_binary/train_{name}.bin'
    path.unlink()
    if size is not None:
        path.write_bytes(bytes(size))
    with pytest.raises(error, match=f'train_{name}.bin'):
        STL10(data_root=str(tmp_path))
