"""Errors of datasets say the loader's key, the file and what to check."""
import json

import pytest
from mini_coco import make_mini_coco
from mmcv.transforms import BaseTransform
from mmengine.dataset import BaseDataset, ConcatDataset, pseudo_collate
from torch.utils.data import DataLoader

from stepnet_mm.resume.resumable_loader import ResumableLoader
from stepnet_mm.utils.data_errors import DataError, data_errors, name_samples

ANN_FILE = 'annotations/instances_train2017.json'


class Loading(BaseTransform):
    """A loader of a user's, which knows no second image."""

    def transform(self, results):
        if results['img_path'].endswith('b.jpg'):
            raise KeyError('mask')
        return results


@pytest.fixture
def loader(tmp_path):
    """loader(workers): of two images in a ConcatDataset; the second fails."""
    for name in 'ab':
        (tmp_path / f'{name}.jpg').touch()
    path = tmp_path / 'images.json'
    path.write_text(json.dumps(dict(metainfo={}, data_list=[
        dict(img_path=f'{tmp_path}/{name}.jpg') for name in 'ab'])))
    part = BaseDataset(str(path), pipeline=[Loading()])
    return lambda workers: DataLoader(
        ConcatDataset([part]), num_workers=workers, collate_fn=pseudo_collate)


@pytest.mark.core
@pytest.mark.parametrize('workers', [0, 1])
@pytest.mark.parametrize('key', ['val_dataloader', 'train_dataloader'])
def test_a_sample_is_named(loader, tmp_path, key, workers):
    """In evaluations, and in trainings, whose seeds of samples stay."""
    made = loader(workers)
    for _ in range(2):  # each validation begins so
        name_samples(made, 'val_dataloader')
    if key.startswith('train'):
        made = ResumableLoader.of(made, 0)
    with pytest.raises(DataError) as error:
        list(made)
    line = str(error.value).strip().splitlines()[-1]
    for word in (f"{key}: expected data without errors, got KeyError in "
                 "transform: 'mask'; check", f'{tmp_path}/b.jpg, ann_file '
                 f'{tmp_path}/images.json'):
        assert word in line


def without(rows, key):
    def edit(content):
        del content[rows][0][key]
        return json.dumps(content)
    return edit


@pytest.mark.parametrize('edit, words', [
    (without('annotations', 'id'), "KeyError in createIndex: 'id'"),
    (without('images', 'width'), "'width'"),
    (lambda content: '[]', "<class 'list'>"),
    (lambda content: '', 'JSONDecodeError')])
def test_a_dataset_that_cannot_be_built_is_named(tmp_path, edit, words):
    datasets = pytest.importorskip('mmdet.datasets')
    make_mini_coco(tmp_path, train=1, val=0, size=64)
    path = tmp_path / ANN_FILE
    path.write_text(edit(json.loads(path.read_text())))
    with pytest.raises(DataError) as error, data_errors('a'):
        datasets.CocoDataset(str(path), data_prefix=dict(img=str(tmp_path)))
    line = str(error.value)
    assert line.startswith('a: expected data') and words in line
    assert line.count(str(path)) == 1


@pytest.mark.parametrize('settings, words', [
    (dict(metainfo=dict(classes=('cat', 'cow'))),
     "0 have instances of metainfo.classes ('cat', 'cow'), while the file has "
     "['circle', 'square', 'triangle']"),
    (dict(filter_cfg=dict(min_size=99)), 'sizes (64, 64) to (64, 64) px, fil'
     "ter_cfg {'min_size': 99}"),
    (dict(indices=0), '2 have instances')])
def test_a_dataset_that_is_left_empty(tmp_path, settings, words):
    datasets = pytest.importorskip('mmdet.datasets')
    make_mini_coco(tmp_path, train=3, val=0, size=64)
    settings = dict(dict(filter_cfg=dict(filter_empty_gt=True), metainfo=dict(
        classes=('circle', 'square', 'triangle'))), **settings)
    with pytest.raises(DataError) as error, data_errors('a'):
        datasets.CocoDataset(str(tmp_path / ANN_FILE), data_prefix=dict(
            img=str(tmp_path / 'train2017')), **settings)
    assert 'a: expected samples, got none of the 3 in' in str(error.value)
    assert words in str(error.value)


def test_a_broken_xml_is_named(tmp_path):
    datasets = pytest.importorskip('mmdet.datasets')
    (tmp_path / 'Annotations').mkdir()
    (tmp_path / 'a.txt').write_text('x\n')
    path = tmp_path / 'Annotations/x.xml'
    path.write_text('<a></a><b></b>')
    with pytest.raises(DataError, match='a: .*ParseError.*junk.*check '
                       f'{path}, ann_file'), data_errors('a'):
        datasets.XMLDataset(
            ann_file=str(tmp_path / 'a.txt'), metainfo=dict(classes=('b', )),
            data_prefix=dict(sub_data_root=str(tmp_path)))
