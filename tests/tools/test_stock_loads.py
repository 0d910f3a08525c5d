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
    path, = (tmp_path / 'ours').glob('*/*.json')
    assert theirs and theirs.items() <= json.loads(path.read_text()).items()
    tool('train', config(32), '--work-dir', tmp_path / 'trained',
         '--cfg-options', f'load_from={tmp_path / "a.pth"}',
         'train_cfg.max_epochs=1')
    path, = (tmp_path / 'trained').glob('*/*.log')
    assert 'WARNING - LoadReportHook' not in path.read_text()
