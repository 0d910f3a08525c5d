"""Puts this package's parts into a config that is going to run.

Each substitution is one line on the log, so that a user sees what
``tools/train.py`` made of a config.
"""
from mmengine.config import Config
from mmengine.logging import print_log

from ..utils.ranks import is_first_rank
from .dataset_config import type_name
from .parts import EVALUATORS, TRAIN, has_hook, import_package, typed


def harden(cfg: Config) -> Config:
    """Make a run survive broken images and, bit for bit, its own end.

    Args:
        cfg (Config): it is changed. ``exact_resume=False`` in it leaves out
            what a resume bit for bit takes.
    """
    use_intact_images(cfg)
    use_tns_metric(cfg)
    if cfg.get('exact_resume', True) and cfg.get('train_cfg'):
        use_exact_resume(cfg)
    return cfg


def use_intact_images(cfg: Config) -> None:
    """Skip and count broken images in training.

    The evaluation pipelines stay as they are, since the libraries' inferencers
    look for their loader in them; it stops at a broken image and names it.
    """
    for name in TRAIN:
        for transform in typed(cfg.get(name), 'LoadImageFromFile'):
            transform['type'] = 'LoadIntactImageFromFile'
            _report(f'{name}: LoadIntactImageFromFile replaces '
                    'LoadImageFromFile; broken images are skipped')
    _add_hook(cfg, 'BrokenImageHook', 'counts broken images')
    import_package(cfg)


def use_tns_metric(cfg: Config) -> None:
    """Bring TNSMetric, where an evaluator has one, the model."""
    if any(typed(cfg.get(name), 'TNSMetric') for name in EVALUATORS):
        _add_hook(cfg, 'TNSMetricHook', 'gives TNSMetric the model')


def use_exact_resume(cfg: Config) -> None:
    """Replace mmengine's loop and checkpoint hook by this package's.

    Own loops, checkpoint hooks and runners of a config stay as they are, and
    what depends on the replaced ones is left out then.
    """
    loop = _resumable_loop(cfg.train_cfg)
    hooks = dict(cfg.get('default_hooks') or {})
    hook = _atomic_hook(hooks.get('checkpoint', dict(type='CheckpointHook')))
    if loop is None or hook is None or 'runner_type' in cfg:
        return
    _report_types('default_hooks.checkpoint', hooks.get('checkpoint'), hook)
    _report_types('train_cfg', cfg.train_cfg, loop)
    cfg.default_hooks = dict(hooks, checkpoint=hook)
    cfg.train_cfg = loop
    _add_hook(cfg, 'PreemptionHook', 'saves when a job is stopped')
    _add_hook(cfg, 'NonFiniteLossHook', 'stops at a loss of NaN or inf')


def _resumable_loop(train_cfg: dict) -> dict:
    """The same loop, resumable; None where it is another one."""
    settings = dict(train_cfg)
    if 'by_epoch' in settings:
        by_epoch = settings.pop('by_epoch')
        settings['type'] = ('EpochBasedTrainLoop'
                            if by_epoch else 'IterBasedTrainLoop')
    name = type_name(settings).removeprefix('Resumable')
    if name not in ('EpochBasedTrainLoop', 'IterBasedTrainLoop'):
        return None
    return dict(settings, type=f'Resumable{name}')


def _atomic_hook(hook: dict) -> dict:
    """The same checkpoint hook, atomic; None where it is another or none."""
    if hook and type_name(hook) == 'CheckpointHook':
        # mmengine's own default where a config has none at all.
        return dict(dict(interval=1), **dict(hook, type='AtomicCheckpointHook'))
    return hook if hook and type_name(hook) == 'AtomicCheckpointHook' else None


def _add_hook(cfg: Config, name: str, reason: str) -> None:
    if not has_hook(cfg, name):
        cfg.custom_hooks = [*(cfg.get('custom_hooks') or []), dict(type=name)]
        _report(f'custom_hooks: {name} added, which {reason}')


def _report_types(key: str, before, after: dict) -> None:
    old = type_name(before or {}) if before else 'mmengine\'s'
    if old != after['type']:
        _report(f'{key}: {after["type"]} replaces {old}')


def _report(text: str) -> None:
    if is_first_rank():
        print_log(f'stepnet_mm: {text}', logger='current')
