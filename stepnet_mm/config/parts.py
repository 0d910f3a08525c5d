"""The parts of a config: its loaders, hooks and typed dicts."""
from mmengine.config import Config

from .dataset_config import type_name

TRAIN = ('train_dataloader', )
EVALUATION = ('val_dataloader', 'test_dataloader')
EVALUATORS = ('val_evaluator', 'test_evaluator')


def loaders_of(cfg: Config) -> dict:
    """All data loaders of a config by name, those of probes too."""
    loaders = {name: cfg[name] for name in filter(cfg.get, TRAIN + EVALUATION)}
    for i, hook in enumerate(cfg.get('custom_hooks') or []):
        probe = hook.get('probe') if isinstance(hook, dict) else None
        if isinstance(probe, dict) and probe.get('dataloader'):
            loaders[f'custom_hooks.{i}.probe.dataloader'] = probe['dataloader']
    return loaders


def has_hook(cfg: Config, name: str) -> bool:
    """Whether a config's hooks have one of that type."""
    hooks = [cfg.get('custom_hooks'), cfg.get('default_hooks')]
    return bool(typed(hooks, name))


def import_package(cfg: Config) -> None:
    """Have a config import what it names when it is read again."""
    wanted = cfg.get('custom_imports') or dict(
        imports=[], allow_failed_imports=False)
    imports = wanted['imports']
    imports = [imports] if isinstance(imports, str) else list(imports)
    if 'stepnet_mm' not in imports:
        cfg.custom_imports = dict(wanted, imports=[*imports, 'stepnet_mm'])


def typed(node, *names: str) -> list:
    """All dicts inside a part of a config whose type is one of the names."""
    return [d for d in dicts(node) if type_name(d) in names]


def dicts(node):
    """All dicts inside a part of a config, itself included."""
    if isinstance(node, dict):
        yield node
        node = list(node.values())
    if isinstance(node, (list, tuple)):
        for child in node:
            yield from dicts(child)
