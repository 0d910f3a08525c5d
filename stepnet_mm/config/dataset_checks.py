"""Checks the datasets that a config names, before anything is built."""
import json
import math
import os
import os.path as osp
import warnings
from collections import Counter

from mmengine.registry import DefaultScope

from .class_counts import check_class_count, head_counts
from .dataset_config import classes_of, innermost_datasets, takes_argument
from .parts import type_name

ID, NUMBER = (int, str), (int, float)
#: What a COCO file must hold for training: its lists, their keys, the types.
COCO_KEYS: dict[str, dict[str, tuple[type, ...]]] = dict(
    images=dict(id=ID, file_name=(str, ), height=NUMBER, width=NUMBER),
    annotations=dict(image_id=ID, category_id=ID, bbox=(object, ),
                     area=NUMBER),
    categories=dict(id=ID, name=(str, )))


def check_datasets(cfg, names: tuple) -> None:
    """Check that the local files of a config's datasets are there and fit.

    Folders and annotation files must exist; those of a ``CocoDataset`` are
    read. Remote storage (``backend_args``) and datasets that download
    themselves are left to the library. Heads must have as many classes as the
    datasets.

    Args:
        cfg (Config): a config of mmdet or mmpretrain.
        names (tuple[str]): the data loaders, e.g. ``('train_dataloader', )``.

    Raises:
        FileNotFoundError: if a folder or an annotation file is missing.
        ValueError: if an annotation file is not COCO or empty, names images
            that are absent, belongs to other images, or lacks a class that
            the dataset expects; or if a head has another class count than a
            dataset.
    """
    heads = head_counts(cfg.get('model'))
    with DefaultScope.overwrite_default_scope(cfg.get('default_scope')):
        for name in names:
            dataset = (cfg.get(name) or {}).get('dataset')
            if isinstance(dataset, dict):
                for key, inner in innermost_datasets(f'{name}.dataset',
                                                     dataset):
                    _check_files(key, inner)
                    check_class_count(key, inner, heads)


def _check_files(key: str, dataset: dict) -> None:
    root = dataset.get('data_root') or ''
    remote = dataset.get('backend_args') or dataset.get('file_client_args')
    if remote or '://' in root:
        return
    if downloads(dataset):
        _announce_download(key, root)
        return
    if root:
        _require(osp.isdir(root), f'{key}.data_root', root, 'a folder')
    prefixes = dataset.get('data_prefix') or {}
    if isinstance(prefixes, str):
        prefixes = {'': prefixes}
    for name, prefix in prefixes.items():
        folder = _join(root, prefix)
        _require(not prefix or osp.isdir(folder),
                 f'{key}.data_prefix.{name}'.rstrip('.'), folder, 'a folder')
    path = dataset.get('ann_file')
    if path and isinstance(path, str):
        path = _join(root, path)
        _require(osp.exists(path), f'{key}.ann_file', path, 'a file')
        if type_name(dataset) == 'CocoDataset':
            _check_coco(key, path, _join(root, prefixes.get('img', '')),
                        classes_of(dataset))


def downloads(dataset: dict) -> bool:
    """Whether the dataset of a config makes its folder itself."""
    return dataset.get('download', takes_argument(dataset, 'download'))


def _announce_download(key: str, root: str) -> None:
    if not osp.isdir(root):
        warnings.warn(
            f'{key}.data_root: expected a folder, got {root!r}, which does '
            'not exist, so the dataset will be downloaded into it; without '
            'network put the files there, or name their folder with '
            '--data-root', stacklevel=2)


def _join(root: str, path: str) -> str:
    return path if osp.isabs(path) else osp.join(root, path)


def _require(found: bool, key: str, path: str, what: str) -> None:
    if not found:
        raise FileNotFoundError(
            f'{key}: expected {what}, got {path}, which does not exist; '
            'change it in the config, or with --data-root or --cfg-options')


def _check_coco(key: str, path: str, folder: str, classes) -> None:
    content = _coco_content(key, path)
    _check_classes(key, path, classes, content['categories'])
    _check_images(key, path, folder, content['images'])
    _check_links(key, path, content)
    _report_boxes(key, path, content)


def _coco_content(key: str, path: str) -> dict:
    # test-dev has no annotations, and needs none to dump predictions.
    images_only = key.startswith('test_dataloader')
    try:
        with open(path, encoding='utf-8') as file:
            content = json.load(file)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f'{key}.ann_file: expected a COCO file, got {path}, which is no '
            f'JSON ({error}); take another file') from None
    for name, keys in COCO_KEYS.items():
        rows = content.get(name) if isinstance(content, dict) else None
        if name == 'annotations' and rows is None and images_only:
            continue
        if not isinstance(rows, list) or not all(
                isinstance(row, dict) and set(keys) <= set(row)
                for row in rows):
            raise ValueError(
                f'{key}.ann_file: expected a COCO file with a list "{name}" '
                f'of objects with {sorted(keys)}, got {path}, which has none; '
                'take another file')
        _check_rows(f'{key}.ann_file: {path}', name, rows,
                    name == 'annotations' and images_only)
    return content


def _check_rows(where: str, name: str, rows: list, may_be_empty: bool) -> None:
    if not rows and not may_be_empty:
        raise ValueError(f'{where}: expected at least one of "{name}", got '
                         'an empty list; take another file')
    for i, row in enumerate(rows):
        for key, kinds in COCO_KEYS[name].items():
            if not isinstance(row[key], kinds):
                wanted = ' or '.join(kind.__name__ for kind in kinds)
                raise ValueError(
                    f'{where}: expected {name}[{i}].{key} as {wanted}, got '
                    f'{row[key]!r:.60}; correct it')


def _check_links(key: str, path: str, content: dict) -> None:
    """mmdet drops annotations of no known image or category silently."""
    rows = content.get('annotations') or []
    for name, field in (('images', 'image_id'), ('categories', 'category_id')):
        known = {row['id'] for row in content[name]}
        if len(known) < len(content[name]):
            raise ValueError(
                f'{key}.ann_file: {path}: expected an id of its own for each '
                f'of "{name}", got {len(known)} for {len(content[name])}; '
                'correct it')
        lost = [row for row in rows if row[field] not in known]
        text = (f'{key}.ann_file: expected each {field} of {path} among the '
                f'ids of its {name}, got {len(lost)} of {len(rows)} '
                'annotations with others, such as '
                f'{[row[field] for row in lost[:3]]}')
        if lost and len(lost) == len(rows):
            raise ValueError(f'{text}; take another file')
        if lost:
            warnings.warn(f'{text}; they are left out: correct or remove '
                          'them', stacklevel=2)


def _check_classes(key: str, path: str, classes, categories: list) -> None:
    """mmdet drops the objects of other categories without a word."""
    names = [category['name'] for category in categories]
    absent = [name for name in classes or () if name not in names]
    if absent:
        raise ValueError(
            f'{key}.ann_file: expected the categories {absent} too, got '
            f'{names} in {path}; set {key}.metainfo=dict(classes=(...)) (and '
            'num_classes of the head)')


def _check_images(key: str, path: str, folder: str, images: list) -> None:
    for image in images:
        if not all(0 < image[side] < math.inf for side in ('height', 'width')):
            raise ValueError(
                f'{key}.ann_file: {path}: expected a height and a width above '
                f'0 px, got {image["height"]!r} and {image["width"]!r} of '
                f'image {image["id"]!r}; correct them')
    folder = folder or osp.curdir
    present = {entry.name for entry in os.scandir(folder)}
    absent = [
        image['file_name'] for image in images
        if image['file_name'] not in present
        and not osp.isfile(osp.join(folder, image['file_name']))
    ]
    if absent:
        shown = ', '.join(absent[:5]) + (', ...' if len(absent) > 5 else '')
        raise ValueError(
            f'{key}: expected the {len(images)} images of {path} in {folder}, '
            f'got {len(images) - len(absent)}, without {shown}; check '
            'data_prefix.img')


def _report_boxes(key: str, path: str, content: dict) -> None:
    """Warn of boxes that training does not see and that AP counts as missed.

    mmdet leaves them out of the training without a word; COCO itself has a
    few, so they are no error.
    """
    sizes = {i['id']: (i['width'], i['height']) for i in content['images']}
    rows, bad, reasons = content.get('annotations') or (), [], Counter[str]()
    for annotation in rows:
        box, image = annotation['bbox'], annotation['image_id']
        if not (isinstance(box, list) and len(box) == 4 and all(
                isinstance(value, (int, float)) for value in box)):
            raise ValueError(
                f'{key}.ann_file: expected each bbox as [x, y, width, height] '
                f'in px, got {box!r} in annotation {annotation.get("id")} of '
                f'{path}; correct it')
        if image in sizes and (why := _left_out(annotation, *sizes[image])):
            bad.append((annotation.get('id'), image, box))
            reasons[why] += 1
    if bad:
        counts = ', '.join(f'{n} {why}' for why, n in reasons.items())
        shown = ', '.join(f'{number} (image {image}, box {box})'
                          for number, image, box in bad[:5])
        warnings.warn(
            f'{key}.ann_file: expected [x, y, width, height] in px and an '
            f'area that mmdet trains with, got {len(bad)} of {len(rows)} in '
            f'{path} that it leaves out: {counts}; annotations {shown}'
            f'{", ..." if len(bad) > 5 else ""}. AP counts them as missed; '
            'correct or remove them', stacklevel=2)


def _left_out(annotation: dict, width: float, height: float) -> str:
    """Why mmdet's CocoDataset has a box nowhere, in its order, or ''."""
    box = annotation['bbox']
    if annotation.get('ignore'):
        return 'boxes with "ignore"'
    if not _inside(box, width, height):
        return 'boxes without area or outside their image'
    if annotation['area'] <= 0:
        return 'boxes whose "area" is not above 0'
    return 'boxes below 1 px' if min(box[2:]) < 1 else ''


def _inside(box: list, width: float, height: float) -> bool:
    """Whether some of a box lies in the image, False for NaN."""
    x, y, w, h = box
    return w > 0 and h > 0 and (min(x + w, width) > max(x, 0)
                                and min(y + h, height) > max(y, 0))
