import json
import os
from unittest.mock import Mock
from urllib.error import HTTPError

import cv2
import numpy as np
import pytest
from mmcv.transforms import LoadImageFromFile
from mmengine.dataset import BaseDataset, pseudo_collate
from torch.utils.data import DataLoader

from stepnet_mm.datasets import LoadIntactImageFromFile
from stepnet_mm.datasets.broken_images import FIRST, broken_images


@pytest.fixture
def intact(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (32, 48, 3), np.uint8)
    path = tmp_path / 'intact.jpg'
    cv2.imwrite(str(path), pixels)
    return path


def cut(path, share):
    broken = path.with_name(f'cut_at_{share}.jpg')
    content = path.read_bytes()
    broken.write_bytes(content[:int(share * len(content))])
    return str(broken)


@pytest.mark.core
@pytest.mark.parametrize('backend', ['cv2', 'pillow'])
@pytest.mark.parametrize('share', [0, .9])
def test_a_truncated_image_is_skipped_and_counted(intact, monkeypatch, share,
                                                  backend):
    """An intact one loads as with mmcv."""
    lines = []
    monkeypatch.setattr('stepnet_mm.datasets.broken_images.print_log',
                        lambda text, **kwargs: lines.append(text))
    path = cut(intact, share)
    transform = LoadIntactImageFromFile(imdecode_backend=backend)
    for times in (1, 2):
        assert transform(dict(img_path=path)) is None
        assert broken_images()[path] == times
    line, = lines
    assert path in line
    found, stock = (loader(dict(img_path=str(intact))) for loader in (
        transform, LoadImageFromFile(imdecode_backend=backend)))
    assert found.keys() == stock.keys()
    assert np.array_equal(found['img'], stock['img'])
    assert broken_images()[str(intact)] == 0


@pytest.mark.parametrize('path', ['http://images.invalid/a.jpg',
                                  '{folder}/missing.jpg'])
def test_what_is_no_broken_image_stays_stocks_error(intact, monkeypatch, path):
    monkeypatch.setattr(
        'mmengine.fileio.backends.http_backend.urlopen', Mock(
            side_effect=HTTPError(path, 404, 'Not Found', None, None)))
    path = path.format(folder=intact.parent)
    with pytest.raises(OSError) as stock:
        LoadImageFromFile()(dict(img_path=path))
    with pytest.raises(stock.type) as ours:
        LoadIntactImageFromFile()(dict(img_path=path))
    assert str(ours.value) == str(stock.value)
    assert not broken_images()[path]


def test_where_no_image_decodes_the_training_ends(intact, tmp_path):
    """mmengine's dataset would draw 1000 times, and give no reason."""
    path = cut(intact, .5)
    with pytest.raises(ValueError, match='none that decodes .failed to load'):
        dataset_of([path] * 2, tmp_path)[0]
    transform = LoadIntactImageFromFile()
    transform(dict(img_path=str(intact)))
    assert not any(transform(dict(img_path=path)) for _ in range(2 * FIRST))


def dataset_of(paths, tmp_path, kind='LoadIntactImageFromFile'):
    ann_file = tmp_path / 'images.json'
    rows = [dict(img_path=str(path)) for path in paths]
    ann_file.write_text(json.dumps(dict(metainfo={}, data_list=rows)))
    return BaseDataset(ann_file=str(ann_file), pipeline=[dict(type=kind)])


def test_counts_come_back_from_worker_processes(intact, tmp_path):
    """Into a log that the system cleaned away, too."""
    broken = cut(intact, .5)
    dataset = dataset_of([intact, intact, broken, intact], tmp_path)
    os.remove(dataset.pipeline.transforms[0].log)
    assert broken_images()[broken] == 0
    loader = DataLoader(dataset, num_workers=2, collate_fn=pseudo_collate)
    loaded = [batch['img_path'] for batch in loader]
    assert loaded == [[str(intact)]] * 4
    assert broken_images()[broken] >= 1
