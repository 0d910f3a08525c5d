import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
from torch import nn

from stepnet_mm.profiling import image_size
from stepnet_mm.steps import SEMAttention

TOOL = 'analysis/model_report'
COUNTS = ('parameters', 'step_parameters', 'mmengine_flops')
CLASSIFIER = '''
_base_ = 'mmpretrain::resnet/resnet18_8xb32_in1k.py'
custom_imports = dict(imports='stepnet_mm', allow_failed_imports=False)
model = dict(
    backbone=dict(
        type='StepResNet',
        init_cfg=dict(type='Pretrained', checkpoint='nowhere.pth')))
'''
DETECTOR = '''
_base_ = 'mmdet::faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py'
custom_imports = dict(imports='stepnet_mm', allow_failed_imports=False)
model = dict(
    backbone=dict(
        type='StepResNet', depth=18, frozen_stages=0, norm_eval=False,
        init_cfg=dict(type='Pretrained', checkpoint='nowhere.pth')),
    neck=dict(in_channels=[64, 128, 256, 512]),
    roi_head=dict(bbox_head=dict(fc_out_channels=64)),
    train_cfg=dict(rpn_proposal=dict(max_per_img=100)),
    test_cfg=dict(rpn=dict(max_per_img=100)))
'''
SMALL = {
    'mmpretrain': ('--image-size', 32, 32),
    'mmdet': ('--image-size', 90, 64)
}


@pytest.fixture
def write(tmp_path):
    """write('mmdet') -> the path of a config of that library"""

    def write(scope):
        pytest.importorskip(scope)
        path = tmp_path / f'{scope}.py'
        path.write_text(DETECTOR if scope == 'mmdet' else CLASSIFIER)
        return path

    return write


@pytest.fixture
def report(tool, write, capsys):
    """report('mmdet', '--train') -> the report that JSON holds"""

    def report(scope, *options):
        capsys.readouterr()
        tool(TOOL, write(scope), *SMALL[scope], '--runs', 2, '--format',
             'json', *options)
        return json.loads(capsys.readouterr().out)

    return report


def build(path):
    cfg = Config.fromfile(path)
    init_default_scope(cfg.default_scope)
    return MODELS.build(cfg.model)


def parts_of(found):
    return {part.pop('part'): part for part in found['parts']}


def test_a_module_is_not_in_one_whose_name_begins_alike(load_tool):
    model = nn.ModuleDict({name: SEMAttention(16)
                           for name in ('step1', 'step10')})
    assert [*load_tool(TOOL).find_steps(model)] == ['step1', 'step10']


@pytest.mark.core
@pytest.mark.parametrize('scope', SMALL)
def test_the_parts_sum_to_the_model_and_known_ones_are_by_hand(
        report, write, scope):
    found = report(scope, '--batch-size', 2)
    latency, memory = found['latency'], found['memory']
    assert latency['median_ms'] > 0 <= latency['iqr_ms']
    assert latency['input_shape'] == [2, *found['input_shape'][1:]]
    assert memory['peak_bytes'] >= memory['before_bytes'] > 2**20
    parts = parts_of(found)
    total = parts.pop('total')
    for key in COUNTS:
        assert sum(part[key] for part in parts.values()) == total[key], key
        assert min(part[key] for part in parts.values()) >= 0, key
    model = build(write(scope))
    assert total['parameters'] == sum(p.numel() for p in model.parameters())
    assert parts['layer3']['parameters'] == sum(
        p.numel() for p in model.backbone.layer3.parameters())
    heads = dict(
        mmpretrain=['neck', 'head'], mmdet=['neck', 'rpn_head', 'roi_head'])
    assert list(parts) == [
        'stem', 'layer1', 'layer2', 'layer3', 'layer4', *heads[scope]
    ]
    height, width = dict(mmpretrain=(32, 32), mmdet=(96, 64))[scope]
    assert found['input_shape'] == [1, 3, height, width]
    # The stem: a 7x7 convolution of stride 2 to 64 channels, and BatchNorm.
    cells = height * width // 4
    assert parts['stem'] == dict(
        parameters=64 * 3 * 49 + 2 * 64,
        step_parameters=0,
        mmengine_flops=(3 * 49 + 2) * 64 * cells)
    if scope == 'mmpretrain':
        assert parts['head']['mmengine_flops'] == 512 * 1000


@pytest.mark.long
def test_what_the_steps_add(report):
    found, plain = (
        report('mmpretrain', '--cfg-options', f'model.backbone.step={step}')
        for step in ('StepAdaptor', 'None'))
    # 6C parameters in every block with an identity shortcut.
    added = 6 * (2 * 64 + 128 + 256 + 512)
    assert found['steps'] == dict(
        types=dict(StepAdaptor=5),
        parameters=added,
        step_parameters=added,
        mmengine_flops=2 * (2 * 64 + 128 + 256 + 512))
    parts, stock = parts_of(found), parts_of(plain)
    assert plain['steps']['types'] == {}
    assert stock['total']['step_parameters'] == 0
    for name in ('layer1', 'layer4', 'total'):
        assert parts[name]['step_parameters'] == parts[name][
            'parameters'] - stock[name]['parameters'] > 0
    assert set(found['mmengine_left_out']) >= {'mean', 'sigmoid', 'mul'}


def test_other_backbones(load_tool):
    tool = load_tool(TOOL)
    backbone = nn.Module()
    backbone.patch = nn.Conv2d(3, 8, 4)
    backbone.token = nn.Parameter(torch.zeros(8))
    backbone.layers = nn.ModuleList([nn.Linear(8, 8)])
    backbone.norm = nn.LayerNorm(8)
    model = nn.ModuleDict(dict(backbone=backbone, head=nn.Linear(8, 2)))
    counts = {
        name: np.array([sum(p.numel() for p in module.parameters())])
        for name, module in model.named_modules()
    }
    parts = tool.group_parts(model, counts)
    assert {name: row.item() for name, row in parts.items()} == dict(
        stem=3 * 8 * 16 + 8 + 8 + 16, layers=72, head=18,
        total=counts[''].item())
    del backbone.layers
    assert list(tool.group_parts(model, counts)) == [
        'backbone', 'head', 'total']


@pytest.mark.parametrize('loaders, expected', [
    (dict(test=[dict(type='ResizeEdge', scale=256), dict(crop_size=224)]),
     ((224, 224), 'test_dataloader')),
    (dict(val=[dict(type='Resize', scale=(1333, 800)), {}]),
     ((800, 1333), 'val_dataloader')),
    (dict(test=[dict(scale=[(480, 320), (640, 320)])]),
     ((224, 224), 'default'))])
def test_the_size_comes_from_the_config(loaders, expected):
    assert image_size(Config({
        f'{name}_dataloader': dict(dataset=dict(
            type='Any', dataset=dict(pipeline=pipeline)))
        for name, pipeline in loaders.items()})) == expected


def test_a_config_of_another_library(tool, write):
    with pytest.raises(ValueError, match='default_scope: expected mmdet'):
        tool(TOOL, write('mmdet'), '--image-size', 32, 32, '--cfg-options',
             'default_scope=None')


@pytest.mark.core
def test_a_config_in_pure_python_has_no_scope(tool, load_tool, tmp_path,
                                              capsys):
    pytest.importorskip('mmpretrain')
    path = tmp_path / 'pure.py'
    path.write_text('''
from mmpretrain.engine import VisualizationHook
from mmpretrain.models import (GlobalAveragePooling, ImageClassifier,
                               LinearClsHead)
from stepnet_mm.models.mmpretrain_binding import StepResNet
default_scope = None
default_hooks = dict(visualization=dict(type=VisualizationHook))
model = dict(
    type=ImageClassifier,
    backbone=dict(type=StepResNet, depth=18, base_channels=8),
    neck=dict(type=GlobalAveragePooling),
    head=dict(type=LinearClsHead, num_classes=10, in_channels=64))
''')
    tool(TOOL, path, '--image-size', 32, 32, '--runs', 1, '--format', 'json')
    assert json.loads(capsys.readouterr().out)['image_size'] == [32, 32]
    cfg = Config.fromfile(path)
    load_tool('test').draw(cfg, SimpleNamespace(
        show_dir=tmp_path, show=False, wait_time=0))
    assert cfg.default_hooks.visualization.enable
