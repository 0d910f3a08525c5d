"""What numbers tell of datasets that stock trains on without a word."""
import json
from types import SimpleNamespace

import pytest
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader

from stepnet_mm.datasets import make_mini_coco
from stepnet_mm.hooks.data_warnings import data_warnings


def warnings_of(dataset, count=3):
    model = nn.Sequential(nn.Identity(), nn.Identity())
    model[0].num_classes, model[1].num_classes = 1, count  # as an rpn_head
    loop = SimpleNamespace(dataloader=DataLoader(dataset))
    return [*data_warnings(SimpleNamespace(
        model=model, train_loop=loop, val_loop=None))]


@pytest.fixture
def coco(tmp_path):
    """coco(edit, classes): a CocoDataset whose annotations were edited."""
    datasets = pytest.importorskip('mmdet.datasets')
    make_mini_coco(tmp_path, train=3, val=3, size=64)
    path = tmp_path / 'annotations/instances_train2017.json'

    def build(edit=lambda content: None,
              classes=('circle', 'square', 'triangle')):
        content = json.loads(path.read_text())
        edit(content)
        path.write_text(json.dumps(content))
        return datasets.CocoDataset(
            str(path), metainfo=dict(classes=classes),
            data_prefix=dict(img=str(tmp_path / 'train2017')))

    return build


def test_nothing_is_wrong(coco):
    assert not warnings_of(coco())
    assert not warnings_of(coco(), count=80)


def test_more_labels_than_the_head_has(coco):
    line, = warnings_of(ConcatDataset([coco()]), count=2)
    assert line.startswith('train_dataloader.dataset: ')
    assert 'num_classes' in line and 'got 3' in line


def test_two_categories_of_one_name(coco):
    line, *_ = warnings_of(coco(
        lambda content: content['categories'][1].update(name='circle'),
        classes=('circle', 'triangle')))
    assert 'got 3' in line and 'one name' in line


def test_two_categories_of_one_name_beside_a_class_without_one(coco):
    line, = warnings_of(coco(
        lambda content: content['categories'][1].update(name='circle'),
        classes=('circle', 'square', 'triangle')))
    assert "['circle']" in line


def test_a_class_that_no_category_has(coco):
    line, = warnings_of(coco(classes=('Circle', 'square', 'triangle')))
    assert 'got 2' in line and 'absent' in line


def test_a_class_without_its_comma(coco):
    line, = warnings_of(coco(classes='circle'))
    assert "('circle', )" in line


def test_boxes_that_are_left_out(coco):
    def edit(content):
        content['annotations'][0]['area'] = 0
        content['annotations'][1]['bbox'][2] = .5

    line, = warnings_of(coco(edit))
    assert 'got 2 of' in line


def test_a_folder_that_is_no_class(tmp_path):
    datasets = pytest.importorskip('mmpretrain.datasets')
    for name in ('cat', 'dog', '.ipynb_checkpoints'):
        (tmp_path / name).mkdir()
        (tmp_path / name / 'a.jpg').touch()
    line, = warnings_of(datasets.CustomDataset(data_root=str(tmp_path)))
    assert '.ipynb_checkpoints' in line and 'cat' not in line
