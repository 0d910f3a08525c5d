"""A start of γ is, at the start, a constant step size."""
import pytest
import torch
from mmengine.registry import MODELS

import stepnet_mm  # noqa: F401


def network(library, **kwargs):
    pytest.importorskip(library)
    with MODELS.switch_scope_and_registry(library) as registry:
        model = registry.build(dict(base_channels=8, **kwargs))
    torch.manual_seed(0)
    model.init_weights()
    model.eval()  # mmdet's returns nothing
    return model


@pytest.mark.parametrize('library, kwargs', [
    ('mmdet', dict(type='ResNet', depth=18)),
    ('mmpretrain', dict(type='ResNet', depth=50)),
])
def test_f_starts_as_with_a_constant_step(library, kwargs):
    init_cfg = [dict(type='Kaiming', layer='Conv2d'),
                dict(type='Constant', val=1, layer='BatchNorm2d')]
    constant = network(
        library, **dict(kwargs, type='StepResNet'), init_cfg=init_cfg,
        step=dict(type='ConstantStep', value=.3), zero_init_residual=False)
    ours = network(
        library, **kwargs, init_cfg=[*init_cfg, dict(type='LastNorm', val=.3)],
        zero_init_residual=False)
    images = torch.randn(1, 3, 64, 64)
    with torch.no_grad():
        for expected, got in zip(constant(images), ours(images)):
            assert torch.allclose(got, expected, rtol=1e-4, atol=1e-6)
    assert ours.layer2[1].norm2.weight.eq(
        .3 if kwargs['depth'] == 18 else 1).all()


@pytest.mark.parametrize('cfg', [
    dict(type='ResNet', depth=18),  # mmpretrain's zero_init_residual is True
    dict(type='MobileNetV2')])
def test_a_start_that_would_be_lost(cfg):
    registry = pytest.importorskip('mmpretrain.registry').MODELS
    model = registry.build(dict(cfg, init_cfg=dict(type='LastNorm', val=.3)))
    with pytest.raises(ValueError, match='LastNorm: .*zero_init_residual'):
        model.init_weights()


def test_all_blocks_of_a_stage():
    model = network(
        'mmpretrain', type='ResNet', depth=18, zero_init_residual=False,
        init_cfg=dict(type='LastNorm', val=.3, identity=False))
    assert all(block.norm2.weight.eq(.3).all() for block in model.layer3)
