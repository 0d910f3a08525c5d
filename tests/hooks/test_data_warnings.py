"""What numbers tell of datasets that stock trains on without a word."""
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


NAMES = 'circle', 'square', 'triangle'


@pytest.fixture
def coco(tmp_path):
    """coco(classes, edit): a CocoDataset, its annotations edited."""
    datasets = pytest.importorskip('mmdet.datasets')
    make_mini_coco(tmp_path, train=3, val=3, size=64)
    path = tmp_path / 'annotations/instances_train2017.json'

    def build(classes=NAMES, edit=('', '')):
        path.write_text(path.read_text().replace(*edit))
        return datasets.CocoDataset(
            str(path), metainfo=dict(classes=classes),
            data_prefix=dict(img=str(tmp_path / 'train2017')))

    return build


@pytest.mark.parametrize('count, settings, words', [
    (2, {}, ['train_dataloader.dataset: ', 'num_classes', 'got 3']),
    (3, dict(classes=('circle', 'triangle'), edit=('"square"', '"circle"')),
     ['got 3', 'one name']),
    (3, dict(classes=('Circle', 'square', 'triangle')), ['got 2', 'absent']),
    (3, dict(classes='circle'), ["('circle', )"])])
def test_annotations_that_do_not_fit(coco, count, settings, words):
    line, *_ = warnings_of(ConcatDataset([coco(**settings)]), count)
    assert all(word in line for word in words)


def test_a_correct_dataset(coco):
    assert not warnings_of(coco()) and not warnings_of(coco(), count=80)


def test_a_folder_that_is_no_class(tmp_path):
    datasets = pytest.importorskip('mmpretrain.datasets')
    for name in ('cat', 'dog', '.ipynb_checkpoints'):
        (tmp_path / name).mkdir()
        (tmp_path / name / 'a.jpg').touch()
    line, = warnings_of(datasets.CustomDataset(data_root=str(tmp_path)))
    assert '.ipynb_checkpoints' in line and 'cat' not in line
