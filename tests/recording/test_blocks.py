import pytest
import torch
from mmengine.registry import MODELS
from torch import nn

from stepnet_mm.recording import ResidualBlock, find_residual_blocks


@MODELS.register_module(force=True)
class BlocksTestGate(nn.Module):

    def __init__(self, in_channels):
        super().__init__()

    def forward(self, x):
        return x * x.mean((2, 3), keepdim=True).sigmoid()


def build(library, name='ResNet', depth=18, **kwargs):
    registry = pytest.importorskip(f'{library}.registry').MODELS
    return registry.build(dict(
        type=f'{library}.{name}', depth=depth, base_channels=8,
        stem_channels=8, **kwargs))


def plugged(*names, position='after_conv3'):
    plugins = [dict(cfg=dict(type=name), position=position,
                    stages=(False, True, False, False)) for name in names]
    model = build('mmdet', depth=50, plugins=plugins)
    return {block.name: block for block in find_residual_blocks(model)}


@pytest.mark.parametrize('library, depth', [('mmdet', 50), ('mmpretrain', 18)])
def test_modules_of_a_stock_block(library, depth):
    model = build(library, depth=depth)
    modules = dict(model.named_modules())
    blocks = find_residual_blocks(model)
    for block in blocks:
        assert block.module is modules[block.name]
        assert block.identity is block.module.downsample
        assert block.residual is getattr(block.module,
                                         'norm3' if depth == 50 else 'norm2')
        assert block.step is None
    projected = [b.position for b in blocks if b.identity is not None]
    assert projected == [0] * (4 if depth == 50 else 3)


@pytest.mark.parametrize('library', ['mmdet', 'mmpretrain'])
def test_steps_of_a_step_backbone(library):
    blocks = find_residual_blocks(build(library, 'StepResNet'))
    for block in blocks:
        expected = None if block.identity is not None else block.module.step
        assert (block.step and block.step.module) is expected
    assert sum(block.step is not None for block in blocks) == 5


def test_step_blocks_none_is_like_the_stock_network():
    blocks = find_residual_blocks(build('mmdet', 'StepResNet', step=None))
    assert all(block.step is None for block in blocks)
    assert all(block.residual is block.module.norm2 for block in blocks)


def test_a_step_plugin_at_the_end_is_the_step():
    blocks = plugged('ToyStep')
    block = blocks['layer2.1']
    assert type(block.step.module).__name__ == 'ToyStep'
    assert block.step.delta is block.step.module.delta
    assert block.residual is None and block.other_gates == ()
    assert blocks['layer1.1'].step is None


@pytest.mark.parametrize('before', [(), ('ToyStep', )])
def test_another_plugin_at_the_end_belongs_to_the_residual(before):
    block = plugged(*before, 'BlocksTestGate')['layer2.1']
    assert isinstance(block.residual, BlocksTestGate)
    assert block.step is None
    assert len(block.other_gates) == 1 + len(before)


def test_a_plugin_inside_the_residual_does_not_count():
    block = plugged('ToyStep', position='after_conv2')['layer2.1']
    assert block.step is None
    assert block.residual is block.module.norm3


def test_a_run_leaves_each_module_in_its_mode():
    model = build('mmdet')
    model.train()
    model.layer1.eval()  # as frozen stages are
    modes = {name: m.training for name, m in model.named_modules()}
    find_residual_blocks(
        model, run=lambda: model(torch.randn(2, 3, 32, 32)))
    assert {name: m.training for name, m in model.named_modules()} == modes


def test_a_block_is_read_only():
    block = ResidualBlock('1', 1, 1, nn.Identity())
    with pytest.raises(AttributeError):
        block.stage = 2
