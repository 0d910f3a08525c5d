"""The questions of docs/reference/troubleshooting.md: configs, and claims."""
import re
from collections import OrderedDict
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from mmengine.registry import HOOKS, MODELS, VISUALIZERS, init_default_scope

from stepnet_mm.config.lookup import all_dicts

pytest.importorskip('mmdet')

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / 'docs/reference/troubleshooting.md').read_text().partition(
    '\n## Questions\n')[2]
BASES = dict(
    faster_rcnn='mmdet::faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py',
    detr='mmdet::detr/detr_r50_8xb2-150e_coco.py',
    classifier='mmpretrain::resnet/resnet50_8xb32_in1k.py')
IMPORTS = '''custom_imports = dict(
    imports='stepnet_mm', allow_failed_imports=False)
'''
PARTS = re.split(r'^### (.*)\n', PAGE, flags=re.M)[1:]
SECTIONS = dict(zip(PARTS[::2], PARTS[1::2]))
SNIPPETS = {title: re.findall(r'^```python\n(.*?)^```$', text, re.M | re.S)
            for title, text in SECTIONS.items()}


def config(title, folder, base='faster_rcnn'):
    """The config that a section's lines make under a base."""
    snippet, = SNIPPETS[title]
    text = snippet if '_base_' in snippet else (
        f'_base_ = {BASES[base]!r}\n{IMPORTS}{snippet}')
    path = folder / 'config.py'
    path.write_text(text)
    return Config.fromfile(path)


def build_backbone(cfg, **changes):
    init_default_scope(cfg.default_scope)
    settings = dict(cfg.model.backbone, init_cfg=None, **changes)
    return MODELS.build(settings)


def find(title):
    found, = [name for name in SECTIONS if title in name]
    return found


@pytest.fixture
def backbone_of(tmp_path):
    return lambda title, **changes: build_backbone(
        config(find(title), tmp_path), **changes)


#: Each snippet under one base, one snippet under every base.
PAIRS = [
    *((title, 'faster_rcnn') for title, found in SNIPPETS.items() if found),
    *(('SyncBN', base) for base in BASES if base != 'faster_rcnn')]


@pytest.mark.parametrize('title, base', [pytest.param(*pair, marks=(
    [pytest.mark.core] if pair[0] == 'SyncBN' else [])) for pair in PAIRS])
def test_the_lines_make_a_config(title, base, tmp_path):
    pytest.importorskip(BASES[base].partition('::')[0])
    cfg = config(title, tmp_path, base)
    assert build_backbone(cfg, base_channels=16)
    for hook in cfg.get('custom_hooks', []):
        assert HOOKS.build(hook)
    assert VISUALIZERS.build(dict(
        cfg.visualizer, name='faq', save_dir=str(tmp_path)))
    assert not any('_delete_' in node for node in all_dicts(cfg.to_dict()))
    assert not {'type', 'by_epoch'} <= {*cfg.train_cfg}  # mmengine's error


def test_an_optimizer_for_steps_alone(tmp_path):
    """A training iteration changes every step, and nothing else."""
    cfg = config(find('step modules alone'), tmp_path)
    net = torch.nn.Sequential(OrderedDict(
        backbone=build_backbone(cfg, base_channels=8, norm_eval=False),
        neck=torch.nn.ModuleList([torch.nn.Conv2d(256, 4, 1)])))
    before = {name: value.clone() for name, value in net.named_parameters()}
    loss = net.neck[0](net.backbone(torch.randn(2, 3, 64, 64))[-1]).sum()
    build_optim_wrapper(net, cfg.optim_wrapper).update_params(loss)
    changed = {name for name, value in net.named_parameters()
               if not torch.equal(value, before[name])}
    steps = {name for name in before if '.step.' in name}
    assert changed and changed <= steps
    assert {name.split('.step.')[0] for name in changed} == {
        name.split('.step.')[0] for name in steps}


def test_sync_bn_in_the_steps(backbone_of):
    net = backbone_of('SyncBN', frozen_stages=0, base_channels=4)
    for step in net.steps():
        assert isinstance(step.norm, torch.nn.SyncBatchNorm)
    assert all(p.requires_grad for p in net.layer1.parameters())
