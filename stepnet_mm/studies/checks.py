"""What can be known to go wrong before the first run of a study starts."""
from collections.abc import Sequence

from mmengine.config import Config

from ..config import set_data_root
from ..config.parts import forbid_downloads
from ..launch.entry import build_loader, build_model
from .run import StudyRun
from .study import digest

SPLITS = ('train', 'val')


def check_runs(runs: Sequence[StudyRun], data_root: str | None) -> None:
    """Check data and model of each method, once.

    The datasets of training and validation are built, but nothing is
    downloaded: several runs would do so at once.

    Args:
        runs (sequence[StudyRun]): of one study.
        data_root (str, optional): in place of the configs'.

    Raises:
        ValueError: if data are not there or cannot be read, a model cannot
            be built, or evaluations would be logged without their iteration.
    """
    configs = {run.method.name: run.config() for run in runs}
    checked = set()
    for name, cfg in configs.items():
        _check_log(name, cfg)
        if data_root:
            set_data_root(cfg, data_root)
        data = digest([cfg.get(f'{split}_dataloader') for split in SPLITS])
        if data not in checked:
            checked.add(data)
            for split in SPLITS:
                _check_split(name, cfg, split)
    for name, cfg in configs.items():
        _check_model(name, cfg)


def _check_log(name: str, cfg: Config) -> None:
    logger = (cfg.get('default_hooks') or {}).get('logger') or {}
    if (cfg.get('train_cfg') or {}).get('max_iters') and logger.get(
            'log_metric_by_epoch', True):
        raise ValueError(
            f'methods.{name}: default_hooks.logger.log_metric_by_epoch: '
            'expected False in a training that counts iterations, got True, '
            'which logs every evaluation as that of epoch 0; set it')


def _check_split(name: str, cfg: Config, split: str) -> None:
    key = f'{split}_dataloader'
    if not cfg.get(key):
        raise ValueError(f'methods.{name}: expected a config with a {key}, '
                         'got none; set one')
    downloading = forbid_downloads(cfg, key)
    try:
        build_loader(cfg, split)
    except Exception as error:  # a dataset may raise anything
        hint = ('; tools/train.py with its config downloads them once'
                if downloading else '')
        raise ValueError(
            f'methods.{name}: expected data that its runs can read, got '
            f'{type(error).__name__}: {error}{hint}') from error


def _check_model(name: str, cfg: Config) -> None:
    try:
        build_model(cfg, start=False)
    except Exception as error:  # a model may raise anything
        raise ValueError(
            f'methods.{name}: expected a config and options that a model can '
            f'be built from, got {type(error).__name__}: {error}; correct '
            'them') from error
