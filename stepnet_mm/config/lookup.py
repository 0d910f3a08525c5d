"""Finds parts of a config: loaders, hooks, dicts by type, classes."""
import inspect
from collections.abc import Iterator

from mmengine.config import Config
from mmengine.registry import Registry

TRAIN = ('train_dataloader', )
EVALUATION = ('val_dataloader', 'test_dataloader')
EVALUATORS = ('val_evaluator', 'test_evaluator')

#: Arguments of mmdet's PipelineSwitchHook and mmpretrain's SwitchRecipeHook.
SWITCHES = ('switch_pipeline', 'train_pipeline')


def loaders_of(cfg: Config) -> dict[str, dict]:
    """All data loaders of a config by name, with the probes' ones."""
    loaders = {name: cfg[name] for name in filter(cfg.get, TRAIN + EVALUATION)}
    for i, hook in enumerate(cfg.get('custom_hooks') or []):
        probe = hook.get('probe') if isinstance(hook, dict) else None
        if isinstance(probe, dict) and probe.get('dataloader'):
            loaders[f'custom_hooks.{i}.probe.dataloader'] = probe['dataloader']
    return loaders


def each_loader(cfg: Config) -> Iterator[dict]:
    """The loops' data loaders; a user's loop may have a list."""
    for part in map(cfg.get, TRAIN + EVALUATION):
        parts = part if isinstance(part, (list, tuple)) else [part]
        yield from (loader for loader in parts if isinstance(loader, dict))


def later_pipelines(cfg: Config) -> Iterator[tuple[str, list]]:
    """Key and value of each pipeline to which a hook switches."""
    for i, hook in enumerate(cfg.get('custom_hooks') or []):
        for node in all_dicts(hook):
            for name in SWITCHES:
                if node.get(name):
                    yield f'custom_hooks.{i}: {name}', node[name]


def has_hook(cfg: Config, name: str) -> bool:
    """Whether a config's hooks have one of that type."""
    hooks = [cfg.get('custom_hooks'), cfg.get('default_hooks')]
    return bool(dicts_of_type(hooks, name))


def library_of(cfg: Config) -> str | None:
    """mmdet or mmpretrain, None for neither.

    Configs in pure Python have no ``default_scope``; there the model's class
    says it.
    """
    kind = (cfg.get('model') or {}).get('type')
    bases = [base.__module__ for base in getattr(kind, '__mro__', ())]
    names = [cfg.get('default_scope'), *(bases or [kind])]
    found = [str(name).partition('.')[0] for name in names]
    return next((n for n in found if n in ('mmdet', 'mmpretrain')), None)


def accepted_arguments(cls: type) -> set[str]:
    """Arguments of a class and its bases, which get its ``**kwargs``."""
    return {name for base in cls.__mro__ if '__init__' in vars(base)
            for name in inspect.signature(vars(base)['__init__']).parameters}


def class_of(kind, registry: Registry, scope: str | None) -> type | None:
    """The class of a ``type``, given as text or class; None if unknown."""
    if not isinstance(kind, str):
        return kind
    with registry.switch_scope_and_registry(scope) as scoped:
        return scoped.get(kind)


def type_name(node: dict) -> str:
    """The name in ``type``, given as text (with or without scope) or class."""
    kind = node.get('type')
    return str(getattr(kind, '__name__', kind)).rpartition('.')[2]


def dicts_of_type(node, *names: str) -> list[dict]:
    """All dicts in a part of a config that have one of these types."""
    return [d for d in all_dicts(node) if type_name(d) in names]


def all_dicts(node) -> Iterator[dict]:
    """All dicts in a part of a config, itself included."""
    return (found for _, found in dicts_by_path(node))


def dicts_by_path(node, path: tuple = ()) -> Iterator[tuple]:
    """Path and node of the same, the path of keys and list indices."""
    if isinstance(node, dict):
        yield path, node
    children = (list(node.items()) if isinstance(node, dict) else
                enumerate(node) if isinstance(node, (list, tuple)) else ())
    for key, child in children:
        yield from dicts_by_path(child, (*path, key))
