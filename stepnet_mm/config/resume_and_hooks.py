"""Puts exact resume, hooks and the image loader into a config that will run.

Each function returns a line for every substitution, for the log.
"""
from mmengine.config import Config
from mmengine.registry import DATASETS, HOOKS, LOOPS, TRANSFORMS, Registry
from torch.utils.data import IterableDataset

from .lookup import (
    EVALUATORS,
    TRAIN,
    class_of,
    dicts_of_type,
    has_hook,
    later_pipelines,
    type_name,
)
from .options import add_custom_import

#: Transforms and datasets that take no None in the place of an image.
NEED_ALL = ('KeyMapper', 'TransformBroadcaster', 'ApplyToList',
            'MultiTaskDataset')


def add_resume_and_hooks(cfg: Config) -> list[str]:
    """Skip broken images, and make a resume bit for bit.

    ``exact_resume=False`` in the config leaves mmengine's loop and checkpoint
    hook.
    """
    lines = use_intact_images(cfg) + use_tns_metric(cfg)
    if cfg.get('exact_resume', True) and cfg.get('train_cfg'):
        lines += use_exact_resume(cfg)
    return [f'stepnet_mm: {line}' for line in lines]


def use_intact_images(cfg: Config) -> list[str]:
    """Skip and count broken images in training.

    A user's class of that name stays, and so do loaders of several images,
    none of which can be left out, and the evaluation pipelines, in which the
    libraries' inferencers look for their loader; there a broken image is an
    error that names it.
    """
    lines = []
    loaders = [(name, cfg.get(name)) for name in TRAIN]
    for name, part in (*loaders, *later_pipelines(cfg)):
        needed = [*map(id, dicts_of_type(
            dicts_of_type(part, *NEED_ALL), 'LoadImageFromFile'))]
        for transform in dicts_of_type(part, 'LoadImageFromFile'):
            if (id(transform) in needed
                    or _is_of_user(transform, TRANSFORMS, cfg)):
                continue
            transform['type'] = 'LoadIntactImageFromFile'
            lines.append(f'{name}: LoadIntactImageFromFile replaces '
                         'LoadImageFromFile; broken images are skipped')
    if add_custom_import(cfg):
        lines.append('custom_imports: stepnet_mm is added')
    return lines + _add_hook(cfg, 'BrokenImageHook', 'counts broken images')


def _is_of_user(node: dict, registry: Registry, cfg: Config) -> bool:
    """Whether a type is a user's, be its name a library's."""
    kind = _class_of(node, registry, cfg)
    # None: no library or user's module that registers it is imported.
    return kind is not None and kind.__module__.partition('.')[0] not in (
        'mmcv', 'mmengine', 'stepnet_mm')


def _class_of(node: dict, registry: Registry, cfg: Config) -> type | None:
    return class_of(node.get('type'), registry, cfg.get('default_scope'))


def use_tns_metric(cfg: Config) -> list[str]:
    """Give TNSMetric the model, where an evaluator has one."""
    if any(dicts_of_type(cfg.get(name), 'TNSMetric') for name in EVALUATORS):
        return _add_hook(cfg, 'TNSMetricHook', 'gives TNSMetric the model')
    return []


def use_exact_resume(cfg: Config) -> list[str]:
    """Replace mmengine's loop and checkpoint hook by this package's.

    All stays if a config has a user's loop, checkpoint hook or runner, or
    a dataset without indices.
    """
    loop = _resumable_loop(cfg)
    hooks = dict(cfg.get('default_hooks') or {})
    # mmengine's own default where there is none.
    hooks.setdefault('checkpoint', dict(type='CheckpointHook', interval=1))
    reason = _why_mmengines(cfg, loop, hooks['checkpoint'])
    if reason or loop is None:
        return [f'{reason}, so a resume is as exact as mmengine makes it']
    lines = []
    cfg.default_hooks = hooks
    # Every file that is resumed from needs the training state.
    for key in ('default_hooks', 'custom_hooks'):
        for hook in dicts_of_type(cfg.get(key), 'CheckpointHook'):
            if atomic := _atomic_hook(hook, cfg):
                hook.update(atomic)
                lines.append(f'{key}: AtomicCheckpointHook replaces '
                             'CheckpointHook')
    if cfg.train_cfg != loop:
        cfg.train_cfg = loop
        lines.append(f'train_cfg: {loop["type"]} replaces the loop of '
                     'mmengine')
    return [*lines,
            *_add_hook(cfg, 'PreemptionHook', 'saves when a job is stopped'),
            *_add_hook(cfg, 'NonFiniteLossHook',
                       'stops at a loss of NaN or inf')]


def _why_mmengines(cfg: Config, loop: dict | None,
                   checkpoint: dict | None) -> str:
    """Why a config keeps loop and checkpoint hook; '' if it does not."""
    if 'runner_type' in cfg:
        return f'runner_type is {cfg.runner_type}'
    if loop is None:
        return f'train_cfg.type is {_full_name(cfg.train_cfg, LOOPS, cfg)}'
    if _atomic_hook(checkpoint, cfg) is None:
        return ('default_hooks.checkpoint is '
                f'{_full_name(checkpoint, HOOKS, cfg)}')
    if _is_stream(cfg.get('train_dataloader'), cfg):
        return 'train_dataloader.dataset has no indices'
    return ''


def _full_name(node: dict | None, registry: Registry, cfg: Config) -> str:
    """A type with its module."""
    kind = _class_of(node or {}, registry, cfg)
    return (f'{kind.__module__}.{kind.__name__}' if kind
            else type_name(node or {}))


def _is_stream(loader: dict | None, cfg: Config) -> bool:
    dataset = (loader or {}).get('dataset')
    kind = (_class_of(dataset, DATASETS, cfg) if isinstance(dataset, dict)
            else type(dataset))
    return isinstance(kind, type) and issubclass(kind, IterableDataset)


def _resumable_loop(cfg: Config) -> dict | None:
    """The same loop, resumable; None for a user's loop."""
    settings = dict(cfg.train_cfg)
    if 'by_epoch' in settings:
        by_epoch = settings.pop('by_epoch')
        settings['type'] = ('EpochBasedTrainLoop'
                            if by_epoch else 'IterBasedTrainLoop')
    elif _is_of_user(cfg.train_cfg, LOOPS, cfg):
        return None
    name = type_name(settings).removeprefix('Resumable')
    if name not in ('EpochBasedTrainLoop', 'IterBasedTrainLoop'):
        return None
    return dict(settings, type=f'Resumable{name}')


def _atomic_hook(hook: dict | None, cfg: Config) -> dict | None:
    """The same checkpoint hook, atomic; None for a user's hook or none."""
    hook = hook or {}
    name = type_name(hook)
    if name == 'AtomicCheckpointHook':
        return hook
    if name != 'CheckpointHook' or _is_of_user(hook, HOOKS, cfg):
        return None
    return {'interval': -1, **hook, 'type': 'AtomicCheckpointHook'}


def _add_hook(cfg: Config, name: str, reason: str) -> list[str]:
    if has_hook(cfg, name):
        return []
    cfg.custom_hooks = [*(cfg.get('custom_hooks') or []), dict(type=name)]
    return [f'custom_hooks: {name} is added, which {reason}']
