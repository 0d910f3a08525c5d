"""What can be known to go wrong before the first run of a study starts."""
from collections.abc import Sequence

from mmengine.config import Config

from ..config import check_data, set_data_root
from ..config.class_counts import head_counts
from ..config.dataset_checks import downloads
from ..config.dataset_config import innermost_datasets
from ..config.parts import TRAIN
from ..launch.entry import build_loader, build_model
from .run import StudyRun

LOADERS = (*TRAIN, 'val_dataloader')


def check_runs(runs: Sequence[StudyRun], data_root: str | None) -> None:
    """Check data and model of each method, once.

    Data are looked at as a run does at its start, and the validation split,
    the smaller one, is read.

    Args:
        runs (sequence[StudyRun]): of one study.
        data_root (str, optional): in place of the configs'.

    Raises:
        ValueError: if data are not there or cannot be read, or a model cannot
            be built.
    """
    configs = {run.method.name: run.config() for run in runs}
    checked = []
    for name, cfg in configs.items():
        if data_root:
            set_data_root(cfg, data_root)
        _forbid_downloads(cfg)
        data = [cfg.get(key) for key in LOADERS], head_counts(cfg.get('model'))
        if data not in checked:
            checked.append(data)
            _check_data(name, cfg)
    for name, cfg in configs.items():
        _check_model(name, cfg)


def _check_data(name: str, cfg: Config) -> None:
    try:
        check_data(cfg, TRAIN)
        build_loader(cfg, 'val')
    except Exception as error:  # a dataset may raise anything
        raise ValueError(
            f'methods.{name}: expected data that its runs can read, got '
            f'{type(error).__name__}: {error}; data that can be downloaded '
            'are, by tools/train.py with one of the configs') from error


def _forbid_downloads(cfg: Config) -> None:
    """Several runs would start the same one at once."""
    for key in LOADERS:
        dataset = (cfg.get(key) or {}).get('dataset') or {}
        for _, inner in innermost_datasets(key, dataset):
            if downloads(inner):
                inner['download'] = False


def _check_model(name: str, cfg: Config) -> None:
    try:
        build_model(cfg, start=False)
    except Exception as error:  # a model may raise anything
        raise ValueError(
            f'methods.{name}: expected a config and options that a model can '
            f'be built from, got {type(error).__name__}: {error}; correct '
            'them') from error
