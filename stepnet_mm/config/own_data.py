"""Finds a user's data in a folder, and what a config has to say of them."""
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from mmengine.config import Config

from .lookup import (
    EVALUATION,
    EVALUATORS,
    TRAIN,
    dicts_by_path,
    dicts_of_type,
    has_hook,
    library_of,
)

#: What the names of a split's files and folders begin with, a word of them.
SPLITS = 'train', 'val', 'test'
IMAGES = '.jpg', '.jpeg', '.png', '.ppm', '.bmp', '.pgm', '.tif'


class Source(str):
    """A part of a config that is written as it stands."""

    __repr__ = str.__str__


@dataclass
class Split:
    """One part of the data.

    Attributes:
        ann_file (str): relative to the folder; '' if there is none.
        images_in (str): folder of the images, relative to it.
        images (int): how many there are.
        counts (Counter): boxes, or images, by class.
        odd (list[str]): what a user may not have meant.
        part (str): of a folder without splits, its indices as source.
    """
    ann_file: str
    images_in: str
    images: int
    counts: Counter
    odd: list[str] = field(default_factory=list)
    masks: bool = False
    part: str = ''


@dataclass
class OwnData:
    """Data in a folder.

    Attributes:
        root (Path): the folder.
        kind (str): ``'COCO'``, ``'VOC'`` or ``'class folders'``.
        classes (list[str]): in the order of their labels.
        splits (dict[str, Split]): train, val and test.
    """
    root: Path
    kind: str
    classes: list[str]
    splits: dict[str, Split]

    def __str__(self):
        lines = [f'{self.kind} in {self.root}: {len(self.classes)} classes']
        for name, split in self.splits.items():
            if name == 'test' and split is self.splits['val']:
                continue
            boxes = (f', {sum(split.counts.values())} boxes'
                     if self.kind != 'class folders' else '')
            rarest = min(self.classes, key=split.counts.__getitem__)
            lines.append(f'  {name}: {split.images} images{boxes}; '
                         f'fewest: {split.counts[rarest]} of {rarest}')
            lines += [f'    odd: {text}' for text in split.odd]
        return '\n'.join(lines)


def find_data(folder: str) -> OwnData:
    """What is in a folder: COCO files, Pascal VOC, or images by class.

    Val and test stand in for each other. Class folders without a split are
    split: each fifth image is for validation.

    Raises:
        ValueError: if it holds none of the three, or parts that differ.
    """
    root = Path(folder).expanduser()
    for find in _find_coco, _find_voc, _find_folders:
        kind, found = find(root)
        if found:
            break
    else:
        raise ValueError(
            f'--data: expected COCO files (train.json, val.json), Pascal VOC '
            f'(ImageSets/Main/train.txt) or folders of images by class '
            f'(train/CLASS/*.jpg), got none in {folder}; name another folder')
    parts = {name: split for name, (split, _) in found.items()}
    classes = found[next(iter(found))][1]
    for name, (_, own) in found.items():
        if kind != 'VOC' and own != classes:
            raise ValueError(f'--data: expected the same classes in all '
                             f'parts, got {own} in {name} and {classes}; '
                             'correct the data')
    if kind == 'VOC':
        classes = sorted(set().union(*(own for _, own in found.values())))
    val = parts.get('val', parts.get('test'))
    if 'train' not in parts or val is None:
        raise ValueError(f'--data: expected train, and val or test, got '
                         f'{sorted(parts)} in {folder}; add the other')
    parts = dict(train=parts['train'], val=val, test=parts.get('test', val))
    unseen = [name for name in classes if not parts['train'].counts[name]]
    if unseen:
        parts['train'].odd.append(f'classes without one: {len(unseen)}, such '
                                  f'as {unseen[0]}')
    return OwnData(root, kind, classes, parts)


def _find_coco(root: Path) -> tuple[str, dict]:
    found: dict = {}
    files = [*root.glob('*.json'), *root.glob('*/*.json')]
    # COCO's own come with files of keypoints and captions.
    for path in sorted(files, key=lambda p: (
            not p.name.startswith('instances'), p)):
        name = _split_of(path.relative_to(root))
        if not name or name in found:
            continue
        try:
            content = json.loads(path.read_text(encoding='utf-8'))
            content['images'], content['annotations'], content['categories']
        except (ValueError, KeyError, TypeError):
            continue
        found[name] = _coco_split(root, path, name, content)
    return 'COCO', found


def _split_of(path: Path) -> str:
    """The split that a path names, its file first."""
    for part in reversed(path.parts):
        for name in SPLITS:
            if re.search(rf'(^|[^a-z]){name}', part.lower()):
                return name
    return ''


def _coco_split(root: Path, path: Path, name: str,
                content: dict) -> tuple[Split, list[str]]:
    names = [row['file_name'] for row in content['images']]
    where = _images_of(root, path, name, names)
    kinds = {row['id']: row['name'] for row in content['categories']}
    rows = content['annotations']
    counts = Counter(kinds.get(row['category_id']) for row in rows)
    absent = [n for n in names if not (where / n).is_file()]
    empty = len(names) - len({row['image_id'] for row in rows})
    odd = _absent(absent)
    odd += [f'images without a box: {empty}'] if empty > 0 else []
    # Roboflow's first category is the parent of the others.
    used = [kind for i, kind in sorted(kinds.items()) if counts[kind] or not
            any(row.get('supercategory') == kind
                for row in content['categories'])]
    masks = bool(rows) and all(row.get('segmentation') for row in rows)
    return Split(_inside(path, root), _inside(where, root), len(names),
                 counts, odd, masks), used


def _images_of(root: Path, path: Path, name: str, names: list) -> Path:
    """The folder of a split's images: other splits may have the same names."""
    some = names[::len(names) // 200 + 1]

    def fits(folder: Path) -> tuple:
        there = sum((folder / each).is_file() for each in some)
        own = _split_of(folder.relative_to(root)) == name
        return bool(there and own), there, folder == path.parent

    folders = filter(Path.is_dir, (*root.glob('*'), *root.glob('*/*')))
    return max([root, *folders], key=fits)


def _absent(names: list[str]) -> list[str]:
    return [f'images that are not there: {len(names)}, such as {names[0]}'
            ] if names else []


def _inside(path: Path, root: Path) -> str:
    return '' if path == root else path.relative_to(root).as_posix()


def _find_voc(root: Path) -> tuple[str, dict]:
    found = {}
    for name in SPLITS:
        path = root / f'ImageSets/Main/{name}.txt'
        if not path.is_file():
            continue
        images = path.read_text(encoding='utf-8').split()
        trees = [ElementTree.parse(root / f'Annotations/{image}.xml')
                 for image in images]
        counts = Counter(item.findtext('name', '') for tree in trees
                         for item in tree.iter('object'))
        files = [root / f'JPEGImages/{image}.jpg' for image in images]
        absent = [str(file) for file in files if not file.is_file()]
        found[name] = Split(f'ImageSets/Main/{name}.txt', '', len(images),
                            counts, _absent(absent)), sorted(counts)
    return 'VOC', found


def _find_folders(root: Path) -> tuple[str, dict]:
    found = {}
    folders = sorted(filter(Path.is_dir, root.glob('[!.]*')))
    for folder in folders:
        name = _split_of(Path(folder.name))
        if name and name not in found:
            found[name] = _class_split(root, folder)
    if 'train' not in found and folders:
        split, classes = _class_split(root, root)
        if split.images:
            parts = {name: f'[i for i in range({split.images}) if {test}]'
                     for name, test in (('train', 'i % 5'),
                                        ('val', 'i % 5 == 0'))}
            found = {name: (_every_fifth(split, name, part), classes)
                     for name, part in parts.items()}
    return 'class folders', {
        name: pair for name, pair in found.items() if pair[0].images}


def _class_split(root: Path, folder: Path) -> tuple[Split, list[str]]:
    counts = Counter({
        path.name: sum(file.suffix.lower() in IMAGES
                       for file in path.rglob('*'))
        for path in filter(Path.is_dir, folder.glob('*'))})
    return Split('', _inside(folder, root), sum(counts.values()),
                 counts), sorted(counts)


def _every_fifth(split: Split, name: str, part: str) -> Split:
    """A part of class folders, whose images are numbered class by class."""
    kinds = enumerate(sorted(split.counts.elements()))
    counts = Counter(kind for i, kind in kinds
                     if (i % 5 == 0) == (name == 'val'))
    return Split('', split.images_in, sum(counts.values()), counts, part=part)


def data_changes(cfg: Config, data: OwnData,
                 measured: bool = True) -> tuple[dict, dict]:
    """Keys and indices of dicts -> settings there, and a config's variables.

    ``measured``: with a TNSHook, if it has none. ValueError if the config is
    not for such data.
    """
    _check(cfg, data)
    changes: dict = {}
    for key in TRAIN + EVALUATION:
        if cfg.get(key):
            path = _dataset_path(cfg, key)
            changes[path] = _dataset(data, key.split('_')[0], path)
    for key in EVALUATORS:
        if cfg.get(key) and data.kind != 'class folders':
            changes[key, ] = _evaluator(cfg, key, data)
    keys = ('model', 'data_preprocessor') + (
        EVALUATORS if data.kind == 'class folders' else ())
    for key in keys:
        for path, node in dicts_by_path(cfg.get(key), (key, )):
            if found := _numbers(node, len(data.classes)):
                changes[path] = {**changes.get(path, {}), **found}
    batch = cfg.train_dataloader.get('batch_size', 1)
    interval = max(1, min(50, data.splits['train'].images // batch // 2))
    changes['default_hooks', 'logger'] = dict(interval=interval)
    if 'base_batch_size' in (cfg.get('auto_scale_lr') or {}):
        changes['auto_scale_lr', ] = dict(enable=True)
    variables: dict = dict(data_root=f'{data.root.as_posix()}/',
                           metainfo=dict(classes=tuple(data.classes)))
    hooks = dict(TNSHook=f', interval={interval}', LoadReportHook='')
    own = [f'dict(type={name!r}{arguments})'
           for name, arguments in hooks.items() if not has_hook(cfg, name)
           and (measured or name != 'TNSHook')]
    if own:
        before = ['*_base_.custom_hooks'] if cfg.get('custom_hooks') else []
        variables['custom_hooks'] = Source(f'[{", ".join(before + own)}]')
    return changes, variables


def _check(cfg: Config, data: OwnData) -> None:
    library = library_of(cfg)
    wanted = 'mmpretrain' if data.kind == 'class folders' else 'mmdet'
    if library != wanted or Config._is_lazy_import(cfg.filename):
        raise ValueError(
            f'--data: expected a config of {wanted}, with _base_ and text, '
            f'for {data.kind}, got {cfg.filename}; choose another config')
    stuff = [path for path, node in dicts_by_path(cfg.model, ('model', ))
             if node.get('num_stuff_classes')]
    masks = [node for node in dicts_of_type(
        cfg.train_dataloader, 'LoadAnnotations') if node.get('with_mask')]
    if stuff or masks and not data.splits['train'].masks:
        raise ValueError(
            f'--data: expected a config that needs boxes alone, got one '
            f'{"of stuff classes" if stuff else "that needs masks"}, which '
            f'{data.root} does not have; choose another config')


def _dataset_path(cfg: Config, key: str) -> tuple:
    """Where a loader's one dataset is, inside its wrappers."""
    path: tuple = (key, 'dataset')
    node = cfg[key].dataset
    while 'dataset' in node:
        path, node = (*path, 'dataset'), node['dataset']
    if 'pipeline' not in node:
        raise ValueError(f'--data: expected one dataset in {key}, got '
                         f'{node.get("type")}; choose another config')
    first = node['pipeline'][0]['type'] if node['pipeline'] else 'none'
    if 'LoadImage' not in str(first):
        raise ValueError(f'--data: expected a pipeline that loads images, '
                         f'got {first} first in {key}; choose another config')
    return path


def _dataset(data: OwnData, name: str, path: tuple) -> dict:
    split = data.splits[name]
    found = dict(_delete_=True, type='CustomDataset',
                 data_root=Source('data_root'), metainfo=Source('metainfo'),
                 data_prefix=split.images_in,
                 pipeline=Source(f'_base_.{".".join(path)}.pipeline'))
    if split.part:
        found['indices'] = Source(split.part)
    if data.kind == 'class folders':
        return found
    found.update(type='CocoDataset', ann_file=split.ann_file,
                 data_prefix=dict(img=f'{split.images_in}/'.lstrip('/')))
    if data.kind == 'VOC':
        found.update(type='XMLDataset', data_prefix=dict(sub_data_root=''))
    if name == 'train':
        found['filter_cfg'] = dict(filter_empty_gt=True, min_size=32)
    else:
        found['test_mode'] = True
    return found


def _evaluator(cfg: Config, key: str, data: OwnData) -> dict:
    if data.kind == 'VOC':
        return dict(_delete_=True, type='VOCMetric', metric='mAP')
    metric = next((node.get('metric') for node in dicts_of_type(
        cfg[key], 'CocoMetric')), 'bbox')
    split = data.splits[key.split('_')[0]]
    return dict(_delete_=True, type='CocoMetric', metric=metric,
                ann_file=Source(f'data_root + {split.ann_file!r}'))


def _numbers(node: dict, count: int) -> dict:
    """What a dict says of another number of classes."""
    found: dict = {}
    for key in 'num_classes', 'num_things_classes':
        if isinstance(node.get(key), int) and node[key] > 1:  # 1: any object
            found[key] = count
    weights = node.get('class_weight')
    if isinstance(weights, list) and len(weights) > 1:
        found['class_weight'] = [1.] * count + weights[-1:]
    places = node.get('topk')
    if isinstance(places, (list, tuple)) and max(places) > count:
        found['topk'] = tuple(k for k in places if k <= count)
    return found
