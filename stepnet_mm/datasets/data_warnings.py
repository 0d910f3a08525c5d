"""Warnings of datasets and schedules that train, but not as intended."""
import json
import os.path as osp
from collections.abc import Iterator
from contextlib import suppress
from math import isfinite

from ..utils.hook_helpers import loop_loaders

#: Bytes of annotations that are read again; COCO's own are larger, and known.
LARGEST = 2**25
#: Schedules after whose end the learning rate stays low.
FALLING = 'CosineAnnealingLR', 'PolyLR'


def data_warnings(runner) -> list[str]:
    """A line for each mismatch of a training's datasets, heads and files."""
    lines: list[str] = []
    with suppress(Exception):  # a dataset may hold anything
        lines += _lines(runner)
        lines += _of_schedules(runner)
    return lines


def _lines(runner) -> Iterator[str]:
    counts = [module.num_classes for module in runner.model.modules()
              if isinstance(vars(module).get('num_classes'), int)]
    for name in ('train', 'val'):
        loaders = loop_loaders(getattr(runner, f'{name}_loop'))
        for part in (part for loader in loaders
                     for part in _innermost(loader.dataset)):
            for line in _of_classes(part, [n for n in counts if n > 1]):
                yield f'{name}_dataloader.dataset: {line}'
            for line in _of_file(part) if name == 'train' else ():
                yield f'{name}_dataloader.dataset: {line}'


def _of_schedules(runner) -> Iterator[str]:
    rows = runner.cfg.get('param_scheduler') or []
    for row in rows if isinstance(rows, list) else [rows]:
        length, unit = (runner.max_epochs, 'epochs') if row.get(
            'by_epoch', True) else (runner.max_iters, 'iterations')
        last = row.get('end', length)
        if row['type'] == 'LinearLR' and last > length:
            yield (f'param_scheduler: expected a warm-up within the {length} '
                   f'{unit} of the training, got one of {last}: the learning '
                   'rate stays low; set its end')
        if row['type'] in FALLING and row is rows[-1] and last < length:
            yield (f'param_scheduler: expected {row["type"]} until the end of '
                   f'the {length} {unit} of the training, got one until '
                   f'{last}: the learning rate stays low from there; leave '
                   'out its end and T_max')


def _innermost(dataset) -> Iterator[object]:
    """The datasets inside ConcatDataset, RepeatDataset and the like."""
    inner = getattr(dataset, 'datasets', None) or [
        part for part in [getattr(dataset, 'dataset', None)] if part]
    for part in inner:
        yield from _innermost(part)
    if not inner:
        yield dataset


def _of_classes(dataset, counts: list[int]) -> Iterator[str]:
    """Classes that do not fit; ``counts`` are the heads' num_classes."""
    classes = (getattr(dataset, 'metainfo', None) or {}).get('classes')
    found = getattr(dataset, 'cat_ids', None)  # of COCO
    if isinstance(classes, str):
        yield (f'metainfo.classes: expected a list of names, got the text '
               f'{classes!r}; one class is ({classes!r}, ), with a comma')
        return
    if not isinstance(classes, (list, tuple)):
        return
    if counts and not min(counts) <= len(classes) <= max(counts):
        nearest = min(counts) if len(classes) < min(counts) else max(counts)
        yield (f'expected the {nearest} classes of the model (num_classes), '
               f'got {len(classes)}; set num_classes in every head, or '
               'metainfo.classes')
    if found is not None and len(found) != len(classes):
        yield (f'ann_file: expected one category for each of {len(classes)} '
               f'classes, got {len(found)}: some are absent, or two have one '
               'name, so the labels are others than metainfo.classes says')
    hidden = [name for name in classes if str(name).startswith('.')]
    if hidden:
        yield (f'data_prefix: expected folders of classes, got {hidden} too; '
               'remove them')


def _of_file(dataset) -> Iterator[str]:
    """Boxes that mmdet leaves out."""
    path = str(getattr(dataset, 'ann_file', ''))
    if (not hasattr(dataset, 'cat_ids') or not osp.isfile(path)
            or osp.getsize(path) > LARGEST):
        return
    with open(path, encoding='utf-8') as file:
        content = json.load(file)
    rows = content.get('annotations', ())
    bad = [row.get('id') for row in rows if len(row.get('bbox') or ()) == 4
           and not _is_whole(row['bbox'], row.get('area', 1))]
    if bad:
        yield (f'ann_file: expected finite boxes of 1 px or more and areas '
               f'above 0, got {len(bad)} of {len(rows)} others, annotations '
               f'{bad[:5]}; mmdet leaves them out of the training, or clips '
               'what is infinite')


def _is_whole(box: list, area: float) -> bool:
    """Whether a box and its area are numbers above 0."""
    return all(map(isfinite, (*box, area))) and min(box[2:]) >= 1 and area > 0
