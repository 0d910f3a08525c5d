import re

import pytest
from mmengine.registry import DATASETS, DefaultScope

from stepnet_mm.config.class_counts import check_class_count, head_counts

KEY = 'train_dataloader.dataset'


@pytest.fixture(autouse=True)
def scope():
    pytest.importorskip('mmpretrain')
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        yield


def check(dataset, **heads):
    check_class_count(KEY, dataset, heads or {'model.head.num_classes': 10})


def expect(dataset, *parts, **heads):
    pattern = '.*'.join(re.escape(part) for part in parts)
    with pytest.raises(ValueError, match=pattern):
        check(dataset, **heads)


def named(number):
    return tuple(map(str, range(number)))


@pytest.mark.parametrize('name', ['head', 'bbox_head'])
def test_the_head_of_a_classifier_or_a_single_stage_detector(name):
    model = {name: dict(type='AnyHead', num_classes=10)}
    assert head_counts(model) == {f'model.{name}.num_classes': 10}


def test_heads_of_a_cascade_but_not_its_rpn_or_semantic_head():
    box = dict(num_classes=3, loss_cls=dict(num_classes=5))
    model = dict(
        backbone=dict(num_classes=1000),
        rpn_head=dict(num_classes=1),
        roi_head=dict(
            bbox_head=[box, box],
            mask_head=dict(num_classes=4),
            semantic_head=dict(num_classes=183)))
    assert head_counts(model) == {
        'model.roi_head.bbox_head[0].num_classes': 3,
        'model.roi_head.bbox_head[1].num_classes': 3,
        'model.roi_head.mask_head.num_classes': 4
    }


@pytest.mark.parametrize('model', [
    None,
    dict(head=dict(type='MAEPretrainHead')),
    dict(language_model=dict(), bbox_head=dict(num_classes=256))
])
def test_heads_without_a_known_count(model):
    assert head_counts(model) == {}


@pytest.mark.core
@pytest.mark.parametrize('kind, number', [
    ('STL10', 10), ('FolderCIFAR100', 100), ('mmpretrain.ImageNet', 1000)])
def test_the_count_of_a_type(kind, number):
    head = 'model.head.num_classes'
    check(dict(type=kind), **{head: number})
    expect(
        dict(type=kind), f'{KEY}: ', f'{head}=11',
        f'{kind.split(".")[-1]} with {number}', f'num_classes={number}',
        **{head: 11})


def test_a_type_may_be_a_class():
    expect(dict(type=DATASETS.get('mmpretrain.CIFAR100')), 'CIFAR100 with 100')


def test_every_wrong_head_is_named():
    expect(dict(type='CIFAR100'), 'as many classes as a=10, c=11, got', a=10,
           b=100, c=11)


@pytest.mark.parametrize('given', [
    dict(classes=named(7)),
    dict(metainfo=dict(classes=named(7)), classes=named(10)),
])
def test_classes_of_the_config_go_before_those_of_the_type(given):
    expect(dict(type='CIFAR10', **given), 'CIFAR10 with 7')


@pytest.mark.parametrize('given', [
    dict(type='CIFAR100', metainfo=dict(classes='classes.txt')),
    dict(type='NoSuchDataset'),
])
def test_unknown_classes_are_left_alone(given):
    check(given)


def test_box_heads_see_the_things_of_a_panoptic_dataset():
    panoptic = dict(
        type='NoSuchDataset',
        metainfo=dict(classes=named(13), thing_classes=named(10)))
    check(panoptic)
    expect(panoptic, 'with 10', head=13)


@pytest.fixture
def folders(tmp_path):
    for name in ('images/ant', 'images/bee', 'images/cow'):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / 'images' / 'read.me').write_text('')
    return tmp_path


@pytest.mark.parametrize('prefix', ['images', dict(img_path='images')])
def test_class_folders_are_counted(folders, prefix):
    dataset = dict(
        type='CustomDataset', data_root=str(folders), data_prefix=prefix)
    check(dataset, head=3)
    expect(dataset, 'CustomDataset with 3')


@pytest.mark.parametrize('other', [
    dict(ann_file='train.txt'),
    dict(with_label=False),
    dict(data_prefix='nowhere'),
    dict(type='NoSuchDataset')
])
def test_folders_that_are_no_classes(folders, other):
    dataset = dict(
        type='CustomDataset', data_root=str(folders), data_prefix='images')
    check({**dataset, **other})
