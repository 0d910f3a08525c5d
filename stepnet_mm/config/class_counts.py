"""Compares the class counts of heads and datasets, from the config alone."""
import os
import os.path as osp

from .dataset_config import classes_of
from .parts import type_name

#: Heads inside others that count something else.
OTHER_HEADS = ('rpn_head', 'semantic_head')


def head_counts(model: dict) -> dict:
    """The class counts that a config gives to heads of mmdet or mmpretrain.

    Args:
        model (dict): config of the model, or None.

    Returns:
        dict[str, int]: the config keys of ``num_classes`` and their values.
    """
    model = model or {}
    # Heads that match boxes with text count its tokens, not classes.
    if 'language_model' in model:
        return {}
    return {
        key: count
        for name in ('head', 'bbox_head', 'roi_head')
        for key, count in _counts(f'model.{name}', model.get(name))
    }


def check_class_count(key: str, dataset: dict, heads: dict) -> None:
    """Check that a dataset has as many classes as each head.

    A dataset whose classes the config does not tell is left alone.

    Args:
        key (str): where ``dataset`` is in the config.
        dataset (dict): its config.
        heads (dict[str, int]): see :func:`head_counts`.

    Raises:
        ValueError: if the counts differ; names both keys.
    """
    number = _dataset_count(dataset) if heads else None
    wrong = [
        f'{head}={count}' for head, count in heads.items()
        if number and count != number
    ]
    if wrong:
        raise ValueError(
            f'{key}: expected as many classes as {", ".join(wrong)}, got '
            f'{type_name(dataset)} with {number}; set num_classes={number}, '
            'or change the dataset or its metainfo.classes')


def _counts(key: str, head):
    """Keys and values of num_classes in a head and in those inside it."""
    if isinstance(head, (list, tuple)):
        for i, part in enumerate(head):
            yield from _counts(f'{key}[{i}]', part)
    elif isinstance(head, dict):
        if isinstance(head.get('num_classes'), int):
            yield f'{key}.num_classes', head['num_classes']
        for name, part in head.items():
            if name.endswith('_head') and name not in OTHER_HEADS:
                yield from _counts(f'{key}.{name}', part)


def _dataset_count(dataset: dict):
    """The class count of a dataset, or None."""
    # Of a panoptic dataset, box heads see the things alone.
    classes = classes_of(dataset, 'thing_classes') or classes_of(dataset)
    if classes is None and type_name(dataset) == 'CustomDataset':
        classes = _class_folders(dataset)
    return None if classes is None else len(classes)


def _class_folders(dataset: dict):
    """What mmpretrain's CustomDataset takes as classes where none are told."""
    if dataset.get('ann_file') or not dataset.get('with_label', True):
        return None
    prefix = dataset.get('data_prefix') or ''
    prefix = prefix.get('img_path', '') if isinstance(prefix, dict) else prefix
    folder = osp.join(dataset.get('data_root') or '', prefix)
    if osp.isdir(folder):
        return [entry.name for entry in os.scandir(folder) if entry.is_dir()]
