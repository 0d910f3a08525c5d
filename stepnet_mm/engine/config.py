"""What the entry points do to a config of mmdet or mmpretrain."""
import os
import os.path as osp

from mmengine.config import Config

from ..datasets.checks import check_datasets, type_name

TRAIN = ('train_dataloader', )
EVALUATION = ('val_dataloader', 'test_dataloader')
EVALUATORS = ('val_evaluator', 'test_evaluator')


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
        Config: with broken images handled in training, the hook that
        TNSMetric needs and, without ``exact_resume=False``, all that a bit
        for bit resume takes.
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
    for name in filter(cfg.get, TRAIN + EVALUATION):
        if cfg[name].get('num_workers') == 0:
            cfg[name].persistent_workers = False  # torch refuses it
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
        for transform in _typed(cfg.get(name), 'LoadImageFromFile'):
            transform['type'] = 'LoadIntactImageFromFile'
    _add_hook(cfg, 'BrokenImageHook')
    import_package(cfg)


def use_tns_metric(cfg: Config) -> None:
    """Bring TNSMetric, where an evaluator has one, the model."""
    if any(_typed(cfg.get(name), 'TNSMetric') for name in EVALUATORS):
        _add_hook(cfg, 'TNSMetricHook')


def use_exact_resume(cfg: Config) -> None:
    """Put this package's parts in the place of mmengine's.

    Own loops, checkpoint hooks and runners of a config stay as they are, and
    what depends on the replaced ones is left out then.
    """
    loop = _resumable_loop(cfg.train_cfg)
    hooks = dict(cfg.get('default_hooks') or {})
    checkpoint = hooks.get('checkpoint', dict(type='CheckpointHook'))
    if loop is None or 'runner_type' in cfg or not checkpoint:
        return
    if type_name(checkpoint) == 'CheckpointHook':
        checkpoint = dict(checkpoint, type='AtomicCheckpointHook')
        # mmengine's own default where a config has none at all.
        checkpoint.setdefault('interval', 1)
    if type_name(checkpoint) != 'AtomicCheckpointHook':
        return
    cfg.default_hooks = dict(hooks, checkpoint=checkpoint)
    cfg.train_cfg = loop
    _add_hook(cfg, 'PreemptionHook')
    _add_hook(cfg, 'NonFiniteLossHook')


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


def has_hook(cfg: Config, name: str) -> bool:
    """Whether a config's hooks have one of that type."""
    return bool(_typed([cfg.get('custom_hooks'), cfg.get('default_hooks')],
                       name))


def _add_hook(cfg: Config, name: str) -> None:
    if not has_hook(cfg, name):
        cfg.custom_hooks = [*(cfg.get('custom_hooks') or []), dict(type=name)]


def import_package(cfg: Config) -> None:
    """A dumped config must import what it names when it is read again."""
    wanted = cfg.get('custom_imports') or dict(
        imports=[], allow_failed_imports=False)
    imports = wanted['imports']
    imports = [imports] if isinstance(imports, str) else list(imports)
    if 'stepnet_mm' not in imports:
        cfg.custom_imports = dict(wanted, imports=[*imports, 'stepnet_mm'])


def set_data_root(cfg: Config, root: str) -> None:
    """Move all datasets and annotation files of a config to ``root``.

    Raises:
        ValueError: if the config names no ``data_root``.
    """
    datasets = [
        node for loader in _loaders(cfg).values() for node in _dicts(loader)
        if 'data_root' in node
    ]
    if not datasets:
        raise ValueError('--data-root: the config has no dataset with a '
                         'data_root to change')
    old = datasets[0]['data_root']
    for node in datasets:
        node['data_root'] = root
    for name in EVALUATORS:
        for node in _dicts(cfg.get(name)):
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
    for name, loader in _loaders(cfg).items():
        found = _typed(loader, 'Resize', 'RandomResize',
                       'RandomChoiceResize')
        if not found:
            raise ValueError(f'--image-scale: {name} has no Resize, '
                             'RandomResize or RandomChoiceResize to change')
        for transform in found:
            several = 'scales' in transform
            transform['scales' if several else 'scale'] = [
                tuple(scale)
            ] if several else tuple(scale)


def check_data(cfg: Config, loaders: tuple) -> None:
    """Check the datasets, on the first rank only."""
    if os.environ.get('RANK', os.environ.get('SLURM_PROCID', '0')) == '0':
        check_datasets(cfg, loaders)


def check_weights(cfg: Config) -> None:
    """Check that the files of ``init_cfg`` are there, before any building.

    Raises:
        FileNotFoundError: if one that lies on this machine is not.
    """
    for node in _typed(cfg.get('model'), 'Pretrained'):
        path = node.get('checkpoint') or ''
        if '://' not in path and not osp.isfile(path):
            raise FileNotFoundError(
                f'init_cfg.checkpoint: {path!r} does not exist; expected a '
                'file of weights. Change it in the config (its docstring may '
                'say what makes them) or with --cfg-options '
                'model.backbone.init_cfg.checkpoint=FILE; '
                'model.backbone.init_cfg=None starts from random weights')


def check_sync_bn(cfg: Config) -> None:
    """Check that IEBN meets a SyncBN that keeps its gate.

    Raises:
        ValueError: if ``sync_bn`` is mmcv's, whose layer needs γ and β.
    """
    if cfg.get('sync_bn') == 'mmcv' and _typed(cfg.get('model'), 'IEBN'):
        raise ValueError(
            "sync_bn: got 'mmcv' with norm_cfg=dict(type='IEBN'), expected "
            "'torch': it synchronises IEBN's statistics and keeps its gate")


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


def _set_classification_loaders(cfg: Config) -> None:
    """The loader defaults of mmpretrain's own tools."""
    for name in TRAIN + EVALUATION:
        if cfg.get(name):
            cfg[name].setdefault('pin_memory', True)
            cfg[name].setdefault('collate_fn', dict(type='default_collate'))


def _loaders(cfg: Config) -> dict:
    """All data loaders of a config by name, those of probes too."""
    loaders = {name: cfg[name] for name in filter(cfg.get, TRAIN + EVALUATION)}
    for i, hook in enumerate(cfg.get('custom_hooks') or []):
        probe = hook.get('probe') if isinstance(hook, dict) else None
        if isinstance(probe, dict) and probe.get('dataloader'):
            loaders[f'custom_hooks.{i}.probe.dataloader'] = probe['dataloader']
    return loaders


def _typed(node, *names: str) -> list:
    """All dicts inside a part of a config whose type is one of the names."""
    return [d for d in _dicts(node) if type_name(d) in names]


def _dicts(node):
    """All dicts inside a part of a config, itself included."""
    if isinstance(node, dict):
        yield node
        node = list(node.values())
    if isinstance(node, (list, tuple)):
        for child in node:
            yield from _dicts(child)
