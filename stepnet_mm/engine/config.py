"""What the entry points do to a config of mmdet or mmpretrain."""
import os
import os.path as osp

from mmengine.config import Config

from ..datasets import check_datasets

TRAIN = ('train_dataloader', )
EVALUATION = ('val_dataloader', 'test_dataloader')


def load_config(path: str,
                work_dir: str = None,
                options: dict = None,
                launcher: str = 'none') -> Config:
    """Read a config as the tools of mmdet and mmpretrain do.

    Args:
        path (str): the config file.
        work_dir (str, optional): where records go; before the config's own,
            and before ``work_dirs/<config name>``.
        options (dict, optional): changes to single keys, ``a.b=c``.
        launcher (str): none, pytorch or slurm.

    Returns:
        Config: with ``stepnet_mm`` imported and broken images handled.
    """
    cfg = Config.fromfile(path)
    cfg.launcher = launcher
    if options:
        cfg.merge_from_dict(options)
    name = osp.splitext(osp.basename(path))[0]
    cfg.work_dir = work_dir or cfg.get('work_dir') or osp.join(
        'work_dirs', name)
    if cfg.get('default_scope') == 'mmpretrain':
        _set_classification_loaders(cfg)
    use_intact_images(cfg)
    return cfg


def use_intact_images(cfg: Config) -> None:
    """Skip and count broken images in training, name them in a test."""
    for name in TRAIN + EVALUATION:
        for transform in _transforms(cfg.get(name)):
            if transform.get('type') in ('LoadImageFromFile',
                                         'mmcv.LoadImageFromFile'):
                transform['type'] = 'LoadIntactImageFromFile'
                transform['skip_broken'] = name in TRAIN
    cfg.custom_hooks = [*cfg.get('custom_hooks', []),
                        dict(type='BrokenImageHook')]


def set_data_root(cfg: Config, root: str) -> None:
    """Move all datasets and annotation files of a config to ``root``.

    Raises:
        ValueError: if the config names no ``data_root``.
    """
    datasets = [
        node for name in TRAIN + EVALUATION for node in _dicts(cfg.get(name))
        if 'data_root' in node
    ]
    if not datasets:
        raise ValueError('--data-root: the config has no dataset with a '
                         'data_root to change')
    old = datasets[0]['data_root']
    for node in datasets:
        node['data_root'] = root
    for name in ('val_evaluator', 'test_evaluator'):
        for node in _dicts(cfg.get(name)):
            path = node.get('ann_file')
            if path and path.startswith(old):
                node['ann_file'] = osp.join(root, path[len(old):].lstrip('/'))


def set_image_scale(cfg: Config, scale: tuple) -> None:
    """Set the scale of every ``Resize`` in the pipelines.

    Args:
        scale (tuple[int, int]): long and short edge in px.

    Raises:
        ValueError: if there is no ``Resize`` with a ``scale``.
    """
    found = [
        transform for name in TRAIN + EVALUATION
        for transform in _transforms(cfg.get(name))
        if transform.get('type') == 'Resize' and 'scale' in transform
    ]
    if not found:
        raise ValueError('--image-scale: the config has no Resize with a '
                         'scale to change')
    for transform in found:
        transform['scale'] = tuple(scale)


def check_data(cfg: Config, loaders: tuple) -> None:
    """Check the datasets, on the first rank only."""
    if os.environ.get('RANK', os.environ.get('SLURM_PROCID', '0')) == '0':
        check_datasets(cfg, loaders)


def use_amp(cfg: Config) -> None:
    """Train with automatic mixed precision, a dynamic loss scale."""
    kind = cfg.optim_wrapper.get('type', 'OptimWrapper')
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


def _set_classification_loaders(cfg: Config) -> None:
    """The loader defaults of mmpretrain's own tools."""
    for name in TRAIN + EVALUATION:
        if cfg.get(name):
            cfg[name].setdefault('pin_memory', True)
            cfg[name].setdefault('collate_fn', dict(type='default_collate'))


def _transforms(node):
    return [d for d in _dicts(node) if isinstance(d.get('type'), str)]


def _dicts(node):
    """All dicts inside a part of a config, itself included."""
    if isinstance(node, dict):
        yield node
        node = list(node.values())
    if isinstance(node, (list, tuple)):
        for child in node:
            yield from _dicts(child)
