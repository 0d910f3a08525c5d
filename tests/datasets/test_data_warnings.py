"""What numbers tell of datasets that stock trains on without a word."""
import json
from math import inf, nan
from types import SimpleNamespace

import pytest
from mini_coco import make_mini_coco
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader

from stepnet_mm.datasets.data_warnings import data_warnings

NAMES = 'circle', 'square', 'triangle'


def warnings_of(dataset, count=3, end=100, last=4):
    schedule = dict(param_scheduler=[
        dict(type='LinearLR', by_epoch=False, end=end),
        dict(type='CosineAnnealingLR', end=last)])
    model = nn.Sequential(nn.Identity(), nn.Identity())
    model[0].num_classes, model[1].num_classes = 1, count  # as an rpn_head
    loop = SimpleNamespace(dataloader=DataLoader(dataset))
    return [*data_warnings(SimpleNamespace(
        model=model, train_loop=loop, val_loop=None, cfg=schedule,
        max_iters=100, max_epochs=4))]


@pytest.fixture
def coco(tmp_path):
    """coco(classes, kind=changes): a CocoDataset whose rows were changed."""
    datasets = pytest.importorskip('mmdet.datasets')
    make_mini_coco(tmp_path, train=3, val=3, size=64)
    path = tmp_path / 'annotations/instances_train2017.json'

    def build(classes=NAMES, **changed):
        content = json.loads(path.read_text())
        for kind, changes in changed.items():
            for row, change in zip(content[kind], changes):
                row.update(change)
        path.write_text(json.dumps(content))
        return datasets.CocoDataset(
            str(path), metainfo=dict(classes=classes),
            data_prefix=dict(img=str(tmp_path / 'train2017')))

    return build


@pytest.mark.parametrize('changed, classes, count, words', [
    ({}, NAMES, 2, ['train_dataloader.dataset: ', 'num_classes', 'got 3']),
    ({}, NAMES, 80, ['the 80 classes of the model', 'got 3']),
    (dict(categories=[{}, dict(name='circle')]), ('circle', 'triangle'), 2,
     ['got 3', 'one name']),
    ({}, ('Circle', 'square', 'triangle'), 3, ['got 2', 'absent']),
    ({}, 'circle', 3, ["('circle', )"]),
    (dict(annotations=[dict(area=0), dict(bbox=[9, 9, .5, 9])]), NAMES, 3,
     ['got 2 of']),
    # Stock leaves out the first and clips the last.
    (dict(annotations=[dict(bbox=[nan, 9, 9, 9]), dict(area=nan), dict(
        bbox=[9, 9, 9, inf])]), NAMES, 3, ['got 3 of'])])
def test_annotations_that_do_not_fit(coco, changed, classes, count, words):
    line, *_ = warnings_of(ConcatDataset([coco(classes, **changed)]), count)
    assert all(word in line for word in words)


def test_a_correct_dataset(coco):
    assert not warnings_of(coco()) and not warnings_of(coco(), count=1)


def test_schedules_of_another_length_than_the_training(coco):
    line, = warnings_of(coco(), end=500)
    assert 'param_scheduler: expected a warm-up within the 100 iter' in line
    line, = warnings_of(coco(), last=3)
    assert 'CosineAnnealingLR until the end of the 4 epochs' in line


def test_a_folder_that_is_no_class(tmp_path):
    datasets = pytest.importorskip('mmpretrain.datasets')
    for name in ('cat', 'dog', '.ipynb_checkpoints'):
        (tmp_path / name).mkdir()
        (tmp_path / name / 'a.jpg').touch()
    line, = warnings_of(datasets.CustomDataset(data_root=str(tmp_path)), 3)
    assert '.ipynb_checkpoints' in line and 'cat' not in line
