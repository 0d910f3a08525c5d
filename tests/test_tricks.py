"""Tricks of Fig. 8 go with a StepNet, and on top of another config."""
import json
import math
import re
from pathlib import Path

import pytest
import torch
from drawn_cifar import draw_cifar

pytest.importorskip('mmpretrain')

from stepnet_mm import config_path
from stepnet_mm.config import add_resume_and_hooks, read_config, set_data_root
from stepnet_mm.launch.entry import build_runner


@pytest.mark.core
@pytest.mark.parametrize('trick', ['mixup', 'ema'])
def test_it_trains(trick, tmp_path):
    """Two images a class to train, one to test."""
    draw_cifar(tmp_path, train=2, test=1)
    name = config_path(f'resnet164_stepnet_{trick}_cifar10')
    cfg = read_config(name, str(tmp_path / 'work'), {
        'model.backbone.depth': 20, 'train_dataloader.batch_size': 10,
        'train_dataloader.num_workers': 0, 'val_dataloader.num_workers': 0,
        'train_cfg.max_epochs': 1, 'default_hooks.logger.interval': 1})
    set_data_root(cfg, str(tmp_path))
    cfg.visualizer.vis_backends = [dict(type='LocalVisBackend')]
    build_runner(add_resume_and_hooks(cfg)).train()
    log, = tmp_path.glob('work/*/vis_data/scalars.json')
    losses = [row['loss'] for row in map(json.loads, log.open())
              if 'loss' in row]
    assert len(losses) == 2 and all(map(math.isfinite, losses))
    saved = torch.load(tmp_path / 'work/epoch_1.pth', weights_only=False)
    assert ('ema_state_dict' in saved) == (trick == 'ema')


def test_a_trick_goes_on_top_of_a_config_of_mmpretrain(tmp_path):
    page = Path(config_path('mixup')).parents[2] / 'README.md'
    text, = re.findall('```python\n(.*?)```', page.read_text(), re.S)
    path = tmp_path / 'theirs.py'
    path.write_text(text)
    cfg = read_config(str(path))
    assert cfg.model.backbone.type == 'ResNet_CIFAR'
    assert cfg.model.train_cfg == dict(
        augments=[dict(type='Mixup', alpha=1.)])
