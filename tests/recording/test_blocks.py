from collections import OrderedDict

import pytest
import torch
from mmengine.registry import MODELS
from torch import nn

from stepnet_mm.recording import find_residual_blocks

pytestmark = pytest.mark.core

LIBRARIES = ['mmdet', 'mmpretrain']
LAYOUTS = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3)}


@MODELS.register_module(force=True)
class BlocksTestGate(nn.Module):

    def __init__(self, in_channels):
        super().__init__()

    def forward(self, x):
        return x * x.mean((2, 3), keepdim=True).sigmoid()


def build(library, name='ResNet', depth=18, **kwargs):
    registry = pytest.importorskip(f'{library}.registry').MODELS
    return registry.build(
        dict(
            type=f'{library}.{name}',
            depth=depth,
            base_channels=8,
            stem_channels=8,
            **kwargs))


def plugged(*names):
    plugins = [
        dict(
            cfg=dict(type=name),
            position='after_conv3',
            stages=(False, True, False, False)) for name in names
    ]
    model = build('mmdet', depth=50, plugins=plugins)
    return {block.name: block for block in find_residual_blocks(model)}


@pytest.mark.parametrize('library', LIBRARIES)
@pytest.mark.parametrize('name', ['ResNet', 'StepResNet'])
@pytest.mark.parametrize('depth', LAYOUTS)
def test_names_stages_and_positions(library, name, depth):
    model = build(library, name, depth)
    found = [(block.name, block.stage, block.position)
             for block in find_residual_blocks(model)]
    assert found == [(f'layer{stage}.{position}', stage, position)
                     for stage, length in enumerate(LAYOUTS[depth], 1)
                     for position in range(length)]


@pytest.mark.parametrize('library', LIBRARIES)
@pytest.mark.parametrize('depth', LAYOUTS)
def test_modules_of_a_stock_block(library, depth):
    model = build(library, depth=depth)
    modules = dict(model.named_modules())
    for block in find_residual_blocks(model):
        assert block.module is modules[block.name]
        assert block.identity is block.module.downsample
        assert block.residual is getattr(block.module,
                                         'norm3' if depth == 50 else 'norm2')
        assert block.step is None


def test_only_first_blocks_have_a_projection():
    blocks = find_residual_blocks(build('mmdet', depth=50))
    projected = [b.position for b in blocks if b.identity is not None]
    assert projected == [0, 0, 0, 0]


@pytest.mark.parametrize('library', LIBRARIES)
def test_steps_of_a_step_backbone(library):
    blocks = find_residual_blocks(build(library, 'StepResNet'))
    for block in blocks:
        expected = None if block.identity is not None else block.module.step
        assert (block.step and block.step.module) is expected
    assert sum(block.step is not None for block in blocks) == 5


@pytest.mark.parametrize('library', LIBRARIES)
def test_step_blocks_none_is_like_the_stock_network(library):
    blocks = find_residual_blocks(build(library, 'StepResNet', step=None))
    assert all(block.step is None for block in blocks)
    assert all(block.residual is block.module.norm2 for block in blocks)


def test_a_step_plugin_at_the_end_is_the_step():
    blocks = plugged('ToyStep')
    block = blocks['layer2.1']
    assert type(block.step.module).__name__ == 'ToyStep'
    assert block.step.delta is block.step.module.delta
    assert block.residual is None and block.other_gates == ()
    assert blocks['layer1.1'].step is None


def test_another_plugin_at_the_end_belongs_to_the_residual():
    block = plugged('BlocksTestGate')['layer2.1']
    assert isinstance(block.residual, BlocksTestGate)
    assert block.step is None
    assert len(block.other_gates) == 1


def test_the_last_plugin_counts():
    block = plugged('ToyStep', 'BlocksTestGate')['layer2.1']
    assert isinstance(block.residual, BlocksTestGate)
    assert block.step is None


def test_a_plugin_inside_the_residual_does_not_count():
    plugin = dict(cfg=dict(type='ToyStep'), position='after_conv2')
    for block in find_residual_blocks(
            build('mmdet', depth=50, plugins=[plugin])):
        assert block.step is None
        assert block.residual is block.module.norm3


def test_names_inside_a_larger_model():
    model = nn.Sequential(
        OrderedDict(neck=nn.Conv2d(3, 3, 1), backbone=build('mmdet')))
    blocks = find_residual_blocks(model)
    assert blocks[0].name == 'backbone.layer1.0'
    assert [block.stage for block in blocks] == [1, 1, 2, 2, 3, 3, 4, 4]


def test_a_run_leaves_each_module_in_its_mode():
    model = build('mmdet')
    model.train()
    model.layer1.eval()  # as frozen stages are
    modes = {name: m.training for name, m in model.named_modules()}
    find_residual_blocks(
        model, run=lambda: model(torch.randn(2, 3, 32, 32)))
    assert {name: m.training for name, m in model.named_modules()} == modes


def test_a_model_without_residual_blocks():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
    with pytest.raises(ValueError, match='Sequential: .* no residual block'):
        find_residual_blocks(model)


def test_a_block_is_read_only():
    block = find_residual_blocks(build('mmdet'))[0]
    with pytest.raises(AttributeError):
        block.stage = 2
