"""What numbers tell of a dataset that trains, but not as it was meant."""
import json
import os.path as osp
from collections.abc import Iterator

from ..utils.loaders import loaders_of

#: Bytes of annotations that are read again; COCO's own are larger, and known.
LARGEST = 100 * 2**20


def data_warnings(runner) -> Iterator[str]:
    """Compare the datasets of a training with its heads and files.

    Args:
        runner (Runner): its loops are built.

    Yields:
        str: a line for each thing that is not as it should be.
    """
    counts = [module.num_classes for module in runner.model.modules()
              if isinstance(vars(module).get('num_classes'), int)]
    for name in ('train', 'val'):
        loaders = loaders_of(getattr(runner, f'{name}_loop'))
        for part in (part for loader in loaders
                     for part in _innermost(loader.dataset)):
            for line in _of_classes(part, max(counts, default=0)):
                yield f'{name}_dataloader.dataset: {line}'
            if name == 'train' and (line := _of_boxes(part)):
                yield f'{name}_dataloader.dataset: {line}'


def _innermost(dataset) -> Iterator[object]:
    """The datasets inside ConcatDataset, RepeatDataset and the like."""
    inner = getattr(dataset, 'datasets', None) or [
        part for part in [getattr(dataset, 'dataset', None)] if part]
    for part in inner:
        yield from _innermost(part)
    if not inner:
        yield dataset


def _of_classes(dataset, count: int) -> Iterator[str]:
    classes = (getattr(dataset, 'metainfo', None) or {}).get('classes')
    found = getattr(dataset, 'cat_ids', None)  # of COCO
    if isinstance(classes, str):
        yield (f'metainfo.classes: expected a list of names, got the text '
               f'{classes!r}; one class is ({classes!r}, ), with a comma')
        return
    if not isinstance(classes, (list, tuple)):
        return
    if count and len(classes) > count:
        yield (f'expected at most the {count} classes of the model '
               f'(num_classes), got {len(classes)}; set num_classes, or '
               'metainfo.classes')
    if found is not None and len(found) != len(classes):
        yield (f'ann_file: expected one category for each of {len(classes)} '
               f'classes, got {len(found)}: some are absent, or two have one '
               'name, so the labels are others than metainfo.classes says')
    hidden = [name for name in classes if str(name).startswith('.')]
    if hidden:
        yield (f'data_prefix: expected folders of classes, got {hidden} too; '
               'remove them')


def _of_boxes(dataset) -> str:
    """How many boxes mmdet leaves out, which AP counts as missed."""
    path = str(getattr(dataset, 'ann_file', ''))
    if (not hasattr(dataset, 'cat_ids') or not osp.isfile(path)
            or osp.getsize(path) > LARGEST):
        return ''
    with open(path, encoding='utf-8') as file:
        rows = json.load(file).get('annotations', ())
    bad = [row.get('id') for row in rows if len(row.get('bbox') or ()) == 4
           and (min(row['bbox'][2:]) < 1 or row.get('area', 1) <= 0)]
    return (f'ann_file: expected boxes of 1 px or more and areas above 0, got '
            f'{len(bad)} of {len(rows)} others, annotations {bad[:5]}; mmdet '
            'leaves them out of the training') if bad else ''
