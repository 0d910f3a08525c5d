"""What can be known to go wrong before the first run of a study starts."""
import os
import os.path as osp
from collections.abc import Sequence

from mmengine.config import Config

from ..config import set_data_root
from ..config.dataset_config import innermost_datasets
from ..config.parts import TRAIN
from ..launch.entry import build_model
from .run import StudyRun


def check_runs(runs: Sequence[StudyRun], data_root: str | None) -> None:
    """Check data and model of each method, once.

    Args:
        runs (sequence[StudyRun]): of one study.
        data_root (str, optional): in place of the configs'.

    Raises:
        FileNotFoundError: if the folder of a dataset is not there.
        ValueError: if a model cannot be built.
    """
    configs = {run.method.name: run.config() for run in runs}
    for cfg in configs.values():
        if data_root:
            set_data_root(cfg, data_root)
        _check_data(cfg)
    for name, cfg in configs.items():
        _check_model(name, cfg)


def _check_data(cfg: Config) -> None:
    """Datasets that download themselves as well: runs would do so at once."""
    for name in (*TRAIN, 'val_dataloader'):
        dataset = (cfg.get(name) or {}).get('dataset') or {}
        for key, inner in innermost_datasets(f'{name}.dataset', dataset):
            root = inner.get('data_root') or ''
            remote = '://' in root or inner.get('backend_args')
            if root and not remote and not _has_files(root):
                raise FileNotFoundError(
                    f'{key}.data_root: expected a folder with data, got '
                    f'{root}, which does not exist or is empty; give '
                    '--data-root, or download the data there once')


def _has_files(folder: str) -> bool:
    """A download that failed leaves an empty one."""
    return osp.isdir(folder) and bool(os.listdir(folder))


def _check_model(name: str, cfg: Config) -> None:
    try:
        build_model(cfg, start=False)
    except Exception as error:  # a model may raise anything
        raise ValueError(
            f'methods.{name}: expected a config and options that a model can '
            f'be built from, got {type(error).__name__}: {error}; correct '
            'them') from error
