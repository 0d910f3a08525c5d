"""Checks a config before anything is built."""
from mmengine.config import Config

from .parts import dicts_of_type


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
