"""Checkpoints that the libraries load: ours takes them too, and says more."""
import json

import pytest
import torch
from mmengine.config import Config
from mmengine.runner import Runner


def stock(path, work_dir, **settings):
    """The Runner of a config, as the libraries' own tools have it."""
    cfg = Config.fromfile(path)
    cfg.update(work_dir=str(work_dir), **settings)
    return Runner.from_cfg(cfg)


def metrics_of(work_dir):
    path, = work_dir.glob('*/*.json')
    return json.loads(path.read_text())


def log_of(work_dir):
    path, = work_dir.glob('*/*.log')
    return path.read_text()


@pytest.mark.core
def test_position_embeddings_are_resized_by_the_library(
        tool, classifier, tmp_path):
    def config(size):
        path = tmp_path / f'vit_{size}.py'
        path.write_text(f'''
_base_ = '{classifier}'
model = dict(
    backbone=dict(_delete_=True, type='VisionTransformer', img_size={size},
                  patch_size=4, arch=dict(
                      embed_dims=8, num_layers=1, num_heads=2,
                      feedforward_channels=8)),
    neck=None, head=dict(_delete_=True, type='VisionTransformerClsHead',
                         num_classes=2, in_channels=8, topk=(1, )))
custom_hooks = [dict(type='LoadReportHook')]
''')
        return path

    small = stock(config(16), tmp_path / 'small')
    torch.save(dict(state_dict=small.model.state_dict()), tmp_path / 'a.pth')
    theirs = stock(config(32), tmp_path / 'stock', custom_hooks=[],
                   load_from=str(tmp_path / 'a.pth')).test()
    tool('test', config(32), tmp_path / 'a.pth', '--work-dir',
         tmp_path / 'ours')
    ours = metrics_of(tmp_path / 'ours')
    assert theirs and theirs.items() <= ours.items()
    tool('train', config(32), '--work-dir', tmp_path / 'trained',
         '--cfg-options', f'load_from={tmp_path / "a.pth"}',
         'train_cfg.max_epochs=1')
    assert 'WARNING - LoadReportHook' not in log_of(tmp_path / 'trained')


def test_a_head_of_other_classes_starts_anew(tool, detector, tmp_path):
    config, data = detector
    state = stock(config, tmp_path / 'work').model.state_dict()
    for key in [key for key in state if 'bbox_head.fc_' in key]:
        state[key] = torch.cat([state[key]] * 4)
    torch.save(dict(state_dict=state), tmp_path / 'a.pth')
    tool('train', config, '--work-dir', tmp_path / 'ours', '--data-root', data,
         '--cfg-options', f'load_from={tmp_path / "a.pth"}',
         'train_cfg.max_iters=1', 'train_cfg.val_interval=1')
    log = log_of(tmp_path / 'ours')
    assert 'roi_head.bbox_head.fc_cls.weight (source' in log
    assert 'WARNING - LoadReportHook' not in log
