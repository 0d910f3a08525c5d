import json
import re
import shutil

import pytest
from mmengine.config import Config

from stepnet_mm.config import check_datasets
from stepnet_mm.datasets import make_mini_coco
from stepnet_mm.datasets.mini_coco import CLASSES

KEY = 'train_dataloader.dataset'


@pytest.fixture(scope='module')
def intact(tmp_path_factory):
    root = tmp_path_factory.mktemp('intact')
    make_mini_coco(root, train=8, val=3, size=64)
    return root


@pytest.fixture
def root(intact, tmp_path):
    return shutil.copytree(intact, tmp_path / 'root')


def coco(root, **kwargs):
    fields = dict(
        type='CocoDataset',
        data_root=str(root),
        ann_file='annotations/instances_train2017.json',
        data_prefix=dict(img='train2017/'),
        metainfo=dict(classes=CLASSES))
    return {**fields, **kwargs}


def check(dataset, loader='train_dataloader', **kwargs):
    cfg = Config({loader: dict(batch_size=2, dataset=dataset), **kwargs})
    check_datasets(cfg, ('train_dataloader', 'val_dataloader'))


def check_there(dataset):
    """Check a dataset of mmpretrain."""
    pytest.importorskip('mmpretrain')
    check(dataset, default_scope='mmpretrain')


def expect(error, *parts, dataset, **kwargs):
    pattern = '.*'.join(re.escape(str(part)) for part in parts)
    with pytest.raises(error, match=pattern):
        check(dataset, **kwargs)


def edit(root, change):
    path = root / 'annotations' / 'instances_train2017.json'
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return coco(root)


def test_an_intact_dataset_passes(intact):
    check(coco(intact))


def test_absolute_paths_pass(intact):
    check(
        coco(
            'unused',
            data_root='',
            ann_file=str(intact / 'annotations/instances_train2017.json'),
            data_prefix=dict(img=str(intact / 'train2017'))))


def test_images_in_the_folder_of_the_command(intact, monkeypatch):
    monkeypatch.chdir(intact / 'train2017')
    there = dict(data_root='', data_prefix=dict(img=''), ann_file=str(
        intact / 'annotations/instances_train2017.json'))
    check(coco('unused', **there))
    monkeypatch.chdir(intact / 'val2017')
    expect(ValueError, 'in .,', dataset=coco('unused', **there))


@pytest.mark.parametrize('key, missing, changes', [
    ('data_root', 'nowhere', dict(data_root='nowhere')),
    ('ann_file', 'annotations/no.json',
     dict(ann_file='annotations/no.json')),
    ('data_prefix.img', 'no', dict(data_prefix=dict(img='no')))])
def test_what_is_missing_is_named_with_its_key(
        intact, monkeypatch, key, missing, changes):
    monkeypatch.chdir(intact)
    expect(FileNotFoundError, f'{KEY}.{key}: ', missing,
           dataset=coco(intact, **changes))


@pytest.mark.parametrize('content', [
    b'{"images": [', b'\xff\xd8\xff\xe0', b'[' * 100_000])
def test_a_file_that_is_not_json(root, content):
    path = root / 'annotations' / 'instances_train2017.json'
    path.write_bytes(content)
    expect(
        ValueError, f'{KEY}.ann_file: ', path, 'no JSON',
        dataset=coco(root))


@pytest.mark.parametrize('text', ['[]', '{"images": 1}'])
def test_json_that_is_not_coco(root, text):
    path = root / 'annotations' / 'instances_train2017.json'
    path.write_text(text)
    expect(
        ValueError,
        f'{KEY}.ann_file: expected a COCO file',
        '"images"',
        path,
        dataset=coco(root))


@pytest.mark.parametrize('name, key', [('images', 'file_name'),
                                       ('annotations', 'bbox'),
                                       ('categories', 'name')])
def test_rows_without_their_keys(root, name, key):
    dataset = edit(root, lambda content: content[name][0].pop(key))
    expect(ValueError, f'{KEY}.ann_file: ', f'"{name}"', key, dataset=dataset)


def test_absent_images_are_named(root):
    names = [f'{i:012d}.jpg' for i in (2, 5)]
    for name in names:
        (root / 'train2017' / name).unlink()
    expect(
        ValueError,
        f'{KEY}: ',
        'the 8 images of',
        'got 6',
        ', '.join(names),
        dataset=coco(root))


def test_of_many_absent_images_five_are_named(root):
    for path in (root / 'train2017').iterdir():
        path.unlink()
    with pytest.raises(ValueError, match=r'05\.jpg, \.\.\.') as error:
        check(coco(root))
    assert '000000000006.jpg' not in str(error.value)


def test_images_in_folders_of_their_own(root):
    (root / 'train2017' / 'deep').mkdir()
    source = root / 'train2017' / '000000000001.jpg'
    source.rename(root / 'train2017' / 'deep' / 'one.jpg')
    first = dict(file_name='deep/one.jpg')
    check(edit(root, lambda content: content['images'][0].update(first)))


def test_classes_that_the_file_lacks_are_named(intact):
    classes = (*CLASSES, 'hexagon')
    expect(
        ValueError,
        f'{KEY}.ann_file: ',
        "['hexagon']",
        str(list(CLASSES)),
        f'{KEY}.metainfo',
        dataset=coco(intact, metainfo=dict(classes=classes)))


def test_a_part_of_the_classes_passes(intact):
    check(coco(intact, metainfo=dict(classes=CLASSES[:1])))


def test_classes_of_the_dataset_type_count_where_none_are_given(intact):
    pytest.importorskip('mmdet.datasets')
    expect(
        ValueError,
        f'{KEY}.ann_file: ',
        "'person'",
        dataset=coco(intact, metainfo=None),
        default_scope='mmdet')


@pytest.mark.parametrize('wrap, inner', [
    (lambda d: dict(type='RepeatDataset', times=2, dataset=d), '.dataset'),
    (lambda d: dict(type='ConcatDataset', datasets=[d]), '.datasets[0]'),
    (lambda d: dict(
        type='RepeatDataset',
        times=2,
        dataset=dict(type='ConcatDataset', datasets=[dict(type='Any'), d])),
     '.dataset.datasets[1]'),
])
def test_nested_datasets(intact, tmp_path, wrap, inner):
    check(wrap(coco(intact)))
    missing = tmp_path / 'nowhere'
    expect(
        FileNotFoundError,
        f'{KEY}{inner}.data_root: ', missing,
        dataset=wrap(coco(missing)))


def test_every_loader_is_checked_and_named(tmp_path):
    missing = tmp_path / 'nowhere'
    expect(
        FileNotFoundError,
        'val_dataloader.dataset.data_root',
        dataset=coco(missing),
        loader='val_dataloader')


def test_loaders_that_are_not_asked_for_are_left_alone(tmp_path):
    check(coco(tmp_path / 'nowhere'), loader='test_dataloader')


def test_loaders_that_are_none_are_left_alone():
    check_datasets(Config(dict(train_dataloader=None)), ('train_dataloader', ))


@pytest.mark.parametrize('remote', [
    dict(backend_args=dict(backend='petrel')),
    dict(data_root='s3://bucket/coco'),
])
def test_remote_storage_is_skipped(tmp_path, remote):
    check(coco(tmp_path / 'nowhere', **remote))


def test_other_datasets_need_their_folder(tmp_path):
    missing = str(tmp_path / 'nowhere')
    expect(
        FileNotFoundError,
        f'{KEY}.data_root: ', missing,
        dataset=dict(type='ImageNet', data_root=missing, split='train'))


@pytest.mark.parametrize('kind, prefix', [
    ('ImageNet', 'train2017'),
    ('mmdet.CocoPanopticDataset', dict(img='train2017', seg='annotations')),
    ('RefCocoDataset', dict(img_path='train2017/')),
])
def test_another_format_is_not_read_but_must_be_there(intact, tmp_path, kind,
                                                      prefix):
    (tmp_path / 'some.txt').write_text('no json')
    dataset = dict(
        type=kind,
        data_root=str(intact),
        ann_file=str(tmp_path / 'some.txt'),
        data_prefix=prefix)
    check(dataset)
    missing = dict(dataset, ann_file='meta/none.txt')
    expect(FileNotFoundError, f'{KEY}.ann_file', dataset=missing)
    nowhere = dict(dataset, data_prefix='nowhere')
    expect(FileNotFoundError, f'{KEY}.data_prefix: ', dataset=nowhere)


@pytest.mark.parametrize('side, value', [
    ('height', 0), ('width', float('nan')), ('width', float('inf'))])
def test_an_image_without_a_size_is_named(root, side, value):
    edit(root, lambda content: content['images'][1].update({side: value}))
    expect(ValueError, 'a height and a width above 0 px', repr(value),
           'of image ', dataset=coco(root))


@pytest.mark.parametrize('name, row', [
    ('images', 1), ('annotations', {}), ('categories', {})])
def test_a_wrong_row_anywhere_is_named(root, name, row):
    edit(root, lambda content: content[name].append(row))
    expect(
        ValueError,
        'train_dataloader.dataset.ann_file',
        f'a list "{name}"',
        dataset=coco(root))


@pytest.mark.parametrize('change', [
    lambda content: content.pop('annotations'),
    lambda content: content.update(annotations=[])])
def test_a_test_set_may_lack_annotations(root, change):
    edit(root, change)
    cfg = Config(dict(test_dataloader=dict(dataset=coco(root))))
    check_datasets(cfg, ('test_dataloader', ))
    expect(ValueError, '"annotations"', dataset=coco(root))


@pytest.mark.parametrize('kind', [
    'CIFAR10', 'mmpretrain.FolderCIFAR100', 'STL10'
])
def test_without_a_download_the_folder_must_be_there(tmp_path, kind):
    missing = tmp_path / 'nowhere'
    dataset = dict(type=kind, data_root=str(missing))
    check_there(dataset)
    check_there(dict(dataset, download=True))
    dataset['download'] = False
    expect(
        FileNotFoundError, f'{KEY}.data_root: ', missing, dataset=dataset,
        default_scope='mmpretrain')
    check_there(dict(dataset, data_root=str(tmp_path)))


def test_a_folder_cifar_needs_nothing_more(tmp_path):
    for split in ('train', 'test'):
        (tmp_path / split).mkdir()
    check(
        dict(type='FolderCIFAR10', data_root=str(tmp_path), download=False))


def classifier(number):
    return dict(
        default_scope='mmpretrain',
        model=dict(head=dict(type='LinearClsHead', num_classes=number)))


@pytest.mark.parametrize('loader', ['train_dataloader', 'val_dataloader'])
def test_the_class_counts_of_head_and_dataset_differ(loader):
    pytest.importorskip('mmpretrain')
    dataset = dict(type='FolderCIFAR100', data_root='data')
    check(dataset, loader, **classifier(100))
    expect(
        ValueError,
        f'{loader}.dataset: expected as many classes as '
        'model.head.num_classes=10, got FolderCIFAR100 with 100',
        dataset=dataset,
        loader=loader,
        **classifier(10))


def test_the_class_counts_of_a_wrapped_dataset():
    pytest.importorskip('mmpretrain')
    parts = [dict(type=kind, data_root='') for kind in ('STL10', 'CIFAR100')]
    expect(
        ValueError,
        f'{KEY}.dataset.datasets[1]: ',
        'model.head.num_classes=10, got CIFAR100',
        dataset=dict(
            type='RepeatDataset',
            dataset=dict(type='ConcatDataset', datasets=parts)),
        **classifier(10))


def test_the_class_counts_of_a_detector(intact):
    heads = dict(bbox_head=dict(num_classes=80), mask_head=None)
    model = dict(rpn_head=dict(num_classes=1), roi_head=heads)
    expect(
        ValueError,
        f'{KEY}: ',
        'model.roi_head.bbox_head.num_classes=80, got CocoDataset with 3',
        dataset=coco(intact),
        model=model)
    heads['bbox_head']['num_classes'] = 3
    check(coco(intact), model=model)


@pytest.mark.parametrize('box', [
    [5, 5, 0, 9], [64, 5, 9, 9], [5, -9, 9, 9], [5, 5, float('nan'), 9]])
def test_boxes_without_area_or_outside_are_told_of(root, box):

    def change(content):
        content['annotations'][2].update(bbox=box, id=77)

    with pytest.warns(UserWarning,
                      match=r'ann_file: .* 1 boxes .* annotations 77 '):
        check(edit(root, change))


def test_boxes_that_mmdet_leaves_out_are_counted(root):
    datasets = pytest.importorskip('mmdet.datasets')

    def change(content):
        for row in content['annotations']:
            row['area'] = 0
        content['annotations'][0].update(ignore=1)
        content['annotations'][1].update(area=.5, bbox=[1, 1, 2, .5])
        content['annotations'][2].update(area=.5, bbox=[1, 1, 1, 1])

    dataset = edit(root, change)
    path = root / 'annotations/instances_train2017.json'
    number = len(json.loads(path.read_text())['annotations'])
    with pytest.warns(UserWarning, match=(
            rf'ann_file: .* {number - 1} of {number} in {path} .* '
            f'{number - 3} boxes whose "area"')) as warned:
        check(dataset)
    assert '1 boxes with "ignore", 1 boxes below 1 px' in str(
        warned[0].message)
    kept = datasets.CocoDataset(**{k: v for k, v in dataset.items()
                                   if k != 'type'})
    assert sum(len(info['instances']) for info in kept) == 1


def test_boxes_that_reach_over_the_border_are_fine(root, recwarn):

    def change(content):
        content['annotations'][2].update(bbox=[-3, 5, 9, 90])

    check(edit(root, change))
    assert not recwarn


@pytest.mark.parametrize('box', [[1, 2, 3], [1, 2, 3, None], None])
def test_boxes_that_are_none(root, box):

    def change(content):
        content['annotations'][2].update(bbox=box, id=77)

    expect(ValueError, KEY + '.ann_file', '[x, y, width, height] in px',
           'annotation 77', dataset=edit(root, change))


def first(part, **values):
    return lambda content: content[part][0].update(values)


def twice(part):
    return lambda content: content[part].append(content[part][0])


def every(part, **values):
    return lambda content: [row.update(values) for row in content[part]]


@pytest.mark.parametrize('change, parts', [
    (first('images', file_name=5), ('images[0].file_name as str', 'got 5')),
    (first('images', height='64'), ('images[0].height as int', "got '64'")),
    (first('annotations', image_id=[1]), ('annotations[0].image_id', '[1]')),
    (first('categories', name=7), ('categories[0].name as str', 'got 7')),
    (lambda c: c.update(images=[]), ('at least one of "images"', )),
    (lambda c: c.update(annotations=[]), ('at least one of "annotations"', )),
    (twice('images'), ('of its own', '"images"')),
    (twice('categories'), ('of its own', '"categories"')),
    (every('annotations', image_id=99), ('image_id', 'images', '[99, 99')),
    (every('annotations', category_id=99), ('category_id', 'categories', )),
])
def test_what_is_wrong_in_annotations_is_named(root, change, parts):
    dataset = edit(root, change)
    with pytest.raises(ValueError) as error:
        check(dataset)
    for part in (f'{KEY}.ann_file', 'instances_train2017.json', *parts):
        assert part in str(error.value)


@pytest.mark.parametrize('field', ['image_id', 'category_id'])
def test_some_annotations_of_nothing_known_are_named(root, field):
    dataset = edit(root, first('annotations', **{field: 99}))
    with pytest.warns(UserWarning, match=rf'each {field} .*got 1 of .*\[99\]'):
        check(dataset)


def test_a_download_is_announced(tmp_path):
    with pytest.warns(UserWarning, match='nowhere.*downloaded'):
        check_there(
            dict(type='FolderCIFAR10', data_root=str(tmp_path / 'nowhere')))
