"""Checks what a training starts from: weights, datasets, its config."""
import importlib
import os

from .report import Report, one_line


def check_weights(report: Report) -> None:
    """Which weights were downloaded before; they need no network."""
    home = os.path.expanduser(
        os.environ.get('TORCH_HOME')
        or os.path.join(os.environ.get('XDG_CACHE_HOME', '~/.cache'), 'torch'))
    folder = os.path.join(home, 'hub', 'checkpoints')
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    if names:
        shown = ', '.join(names[:5]) + (', ...' if len(names) > 5 else '')
        report.ok(f'{len(names)} files of weights in {folder}: {shown}')
    else:
        report.warn(
            f'no weights in {folder}',
            "init_cfg with torchvision:// or http:// will download; on a node "
            'without network put the file there, or start from random weights '
            'by --cfg-options model.backbone.init_cfg=None '
            'model.backbone.frozen_stages=-1')


def check_data(report: Report, root: str) -> None:
    """What is in the folder of the datasets."""
    if not os.path.isdir(root):
        report.warn(f'no folder {root}',
                    'the configs read their datasets there; --data-root of '
                    'the tools names another')
        return
    names = sorted(os.listdir(root))
    report.ok(f'{root}: {", ".join(names) or "empty"}')


def check_config(report: Report, path: str) -> None:
    """Whether a config reads, and its datasets."""
    try:
        # Not at the top: mmengine may be absent.
        config = importlib.import_module('stepnet_mm.config')
        cfg = config.read_config(path)
        config.check_sync_bn(cfg)
        for split in ('train', 'val', 'test'):
            _check_dataset(report, cfg, split)
        report.ok(f'{path}: it reads')
    except Exception as error:
        report.error(f'{path}: {type(error).__name__}', str(error))


def _check_dataset(report: Report, cfg, split: str) -> None:
    key = f'{split}_dataloader'
    if not isinstance(cfg.get(key), dict):
        return
    parts = importlib.import_module('stepnet_mm.config.parts')
    entry = importlib.import_module('stepnet_mm.launch.entry')
    downloading = parts.forbid_downloads(cfg, key)
    try:
        dataset = entry.build_loader(cfg, split).dataset
        report.ok(f'{key}: {len(dataset)} samples')
    except Exception as error:  # a dataset may raise anything
        (report.warn if downloading else report.error)(
            f'{key}: {one_line(error)}',
            'a training downloads it' if downloading else
            '--data-root of the tools names another folder')
