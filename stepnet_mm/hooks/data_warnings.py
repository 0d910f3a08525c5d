"""Warnings of datasets that train, but not as intended."""
from collections.abc import Iterator
from contextlib import suppress

from ..utils.loop_loaders import loop_loaders


def data_warnings(runner) -> list[str]:
    """Compare the datasets of a training with its heads and annotations.

    Args:
        runner (Runner): its loops are built.

    Returns:
        list[str]: a line for each mismatch.
    """
    lines: list[str] = []
    with suppress(Exception):  # a dataset may hold anything
        lines += _lines(runner)
    return lines


def _lines(runner) -> Iterator[str]:
    counts = [module.num_classes for module in runner.model.modules()
              if isinstance(vars(module).get('num_classes'), int)]
    for name in ('train', 'val'):
        loaders = loop_loaders(getattr(runner, f'{name}_loop'))
        for part in (part for loader in loaders
                     for part in _innermost(loader.dataset)):
            for line in _of_classes(part, max(counts, default=0)):
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
    if count > 1 and len(classes) > count:  # 1: of any class
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
