"""Checks a config before anything is built."""
import os.path as osp

from mmengine.config import Config

from ..utils.ranks import is_first_rank
from .dataset_checks import check_datasets
from .parts import dicts_of_type


def check_data(cfg: Config, loaders: tuple) -> None:
    """Check the datasets, on the first rank only.

    Args:
        cfg (Config): the config.
        loaders (tuple[str]): keys of its data loaders.

    Raises:
        FileNotFoundError, ValueError: as :func:`check_datasets` does.
    """
    if is_first_rank():
        check_datasets(cfg, loaders)


def check_weights(cfg: Config) -> None:
    """Check that the files of ``init_cfg`` are there, before any building.

    Raises:
        FileNotFoundError: if one that lies on this machine is not.
    """
    for node in dicts_of_type(cfg.get('model'), 'Pretrained'):
        path = node.get('checkpoint') or ''
        if '://' not in path and not osp.isfile(osp.expanduser(path)):
            raise FileNotFoundError(
                'init_cfg.checkpoint: expected a file of weights, got '
                f'{path!r}, which does not exist; change it in the config '
                '(its docstring may say what makes them) or with '
                '--cfg-options model.backbone.init_cfg.checkpoint=FILE; '
                'model.backbone.init_cfg=None model.backbone.frozen_stages=-1 '
                'starts from random weights')


def check_sync_bn(cfg: Config) -> None:
    """Check that IEBN meets a SyncBN that keeps its gate.

    Raises:
        ValueError: if ``sync_bn`` is mmcv's, whose layer needs γ and β.
    """
    if cfg.get('sync_bn') == 'mmcv' and dicts_of_type(
            cfg.get('model'), 'IEBN'):
        raise ValueError(
            "sync_bn: expected 'torch' with norm_cfg=dict(type='IEBN'), got "
            "'mmcv'; set 'torch', which synchronises IEBN's statistics and "
            'keeps its gate')
