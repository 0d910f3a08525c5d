"""Faster R-CNN with a StepNet backbone on drawn images."""
import importlib
import importlib.util
import math
import tempfile

import torch

from ..config import read_config, set_data_root
from ..config_path import config_path
from ..datasets.mini_coco import make_mini_coco
from ..launch.entry import build_runner
from ..launch.libraries import import_error
from ..launch.report import Report, Unavailable

CONFIG = 'faster_rcnn_r34_stepnet_mini_coco.py'
ITERATIONS = 4


def check(report: Report, device: torch.device) -> None:
    """Whether a few iterations end in a finite loss."""
    _require_operators(device)
    with tempfile.TemporaryDirectory() as folder:
        loss = _train(folder)
    if not math.isfinite(loss):
        raise RuntimeError(f'loss: expected a finite one, got {loss}')
    report.ok(f'Faster R-CNN: {ITERATIONS} iterations, loss {loss:.2f}')


def _require_operators(device: torch.device) -> None:
    if not importlib.util.find_spec('mmdet'):
        raise Unavailable('mmdet is not installed: classification does '
                          'without')
    error = import_error('mmcv.ops')
    if error:
        raise Unavailable(f'mmcv has no compiled operators ({error}): '
                          'classification does without; bash '
                          'tools/setup_env.sh compiles them')
    ops = importlib.import_module('mmcv.ops')
    if device.type == 'cuda' and (
            ops.get_compiling_cuda_version() == 'not available'):
        raise Unavailable('mmcv was compiled for the CPU only: classification '
                          'does without; compile it on this machine')


def _train(folder: str) -> float:
    """The last loss."""
    make_mini_coco(folder, train=8, val=3)
    cfg = read_config(config_path(CONFIG), f'{folder}/work_dir')
    set_data_root(cfg, folder)
    cfg.train_cfg.update(max_iters=ITERATIONS, val_interval=10 * ITERATIONS)
    cfg.train_dataloader.update(num_workers=0, persistent_workers=False)
    runner = build_runner(cfg)
    runner.train()
    return float(runner.message_hub.get_scalar('train/loss').current())
