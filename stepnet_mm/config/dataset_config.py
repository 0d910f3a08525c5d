"""What a config says of a dataset, before it is built."""
from collections.abc import Iterator

from mmengine.registry import DATASETS

from ..utils.arguments import accepted_arguments


def innermost_datasets(key: str,
                       dataset: dict) -> Iterator[tuple[str, dict]]:
    """The innermost datasets of ConcatDataset, RepeatDataset and the like.

    Args:
        key (str): where ``dataset`` is in the config.
        dataset (dict): its config.

    Yields:
        tuple[str, dict]: key and config of each dataset that reads files.
    """
    if isinstance(dataset.get('datasets'), (list, tuple)):
        for i, part in enumerate(dataset['datasets']):
            yield from innermost_datasets(f'{key}.datasets[{i}]', part)
    elif isinstance(dataset.get('dataset'), dict):
        yield from innermost_datasets(f'{key}.dataset', dataset['dataset'])
    else:
        yield key, dataset


def classes_of(dataset: dict, field: str = 'classes') -> list | tuple | None:
    """The class names that a dataset will have, as far as the config tells.

    Args:
        dataset (dict): its config.
        field (str): the field of its metainfo that holds them.

    Returns:
        list | tuple: those of ``metainfo``, else of an argument ``classes``
        (mmpretrain takes one), else of its type's ``METAINFO``; None where
        these name a file or nothing.
    """
    classes = (dataset.get('metainfo') or {}).get(field)
    for place in (dataset, getattr(_class_of(dataset), 'METAINFO', {})):
        classes = place.get(field) if classes is None else classes
    return classes if isinstance(classes, (list, tuple)) else None


def takes_argument(dataset: dict, name: str) -> bool:
    """Whether the class that a config's ``type`` names takes an argument."""
    cls = _class_of(dataset)
    return bool(cls) and name in accepted_arguments(cls)


def _class_of(dataset: dict):
    """The class that ``type`` names in the default scope, or None."""
    kind = dataset.get('type')
    if not isinstance(kind, str):
        return kind
    with DATASETS.switch_scope_and_registry(None) as registry:
        return registry.get(kind)
