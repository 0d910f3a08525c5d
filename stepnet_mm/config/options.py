"""The changes that the tools' options make to a config."""
import os.path as osp

from mmengine.config import Config

from .dataset_config import type_name
from .parts import EVALUATORS, dicts, has_hook, loaders_of, typed


def set_data_root(cfg: Config, root: str) -> None:
    """Move all datasets and annotation files of a config to ``root``.

    Raises:
        ValueError: if the config names no ``data_root``.
    """
    datasets = [
        node for loader in loaders_of(cfg).values() for node in dicts(loader)
        if 'data_root' in node
    ]
    if not datasets:
        raise ValueError('--data-root: the config has no dataset with a '
                         'data_root to change')
    old = datasets[0]['data_root']
    for node in datasets:
        node['data_root'] = root
    for name in EVALUATORS:
        for node in dicts(cfg.get(name)):
            path = node.get('ann_file')
            if path and path.startswith(old):
                node['ann_file'] = osp.join(root, path[len(old):].lstrip('/'))


def set_image_scale(cfg: Config, scale: tuple) -> None:
    """Set the scale of every resizing transform in the pipelines.

    Args:
        scale (tuple[int, int]): long and short edge in px.

    Raises:
        ValueError: if a data loader has none.
    """
    for name, loader in loaders_of(cfg).items():
        found = typed(loader, 'Resize', 'RandomResize', 'RandomChoiceResize')
        if not found:
            raise ValueError(f'--image-scale: {name} has no Resize, '
                             'RandomResize or RandomChoiceResize to change')
        for transform in found:
            several = 'scales' in transform
            transform['scales' if several else 'scale'] = [
                tuple(scale)
            ] if several else tuple(scale)


def use_amp(cfg: Config) -> None:
    """Train with automatic mixed precision, a dynamic loss scale."""
    kind = type_name({'type': 'OptimWrapper', **cfg.optim_wrapper})
    if kind not in ('OptimWrapper', 'AmpOptimWrapper'):
        raise ValueError('--amp: expected optim_wrapper.type OptimWrapper or '
                         f'AmpOptimWrapper, got {kind}')
    cfg.optim_wrapper.type = 'AmpOptimWrapper'
    cfg.optim_wrapper.setdefault('loss_scale', 'dynamic')


def use_auto_scale_lr(cfg: Config) -> None:
    """Scale the learning rate with the batch size over all ranks."""
    if 'base_batch_size' not in cfg.get('auto_scale_lr', {}):
        raise ValueError('--auto-scale-lr: the config has no '
                         'auto_scale_lr.base_batch_size')
    cfg.auto_scale_lr.enable = True


def use_resume(cfg: Config, path: str) -> None:
    """Go on from a checkpoint.

    Args:
        path (str): the checkpoint, or ``'auto'`` for the last one of the
            work dir; the first start of all has its ``load_from``.
    """
    cfg.resume = True
    if path != 'auto':
        cfg.load_from = path
    elif has_hook(cfg, 'AtomicCheckpointHook'):
        cfg.auto_resume = True
    else:
        cfg.load_from = None
