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


@pytest.mark.parametrize('library, depth, identity', [
    ('mmdet', 50, True), ('mmpretrain', 18, False)])
def test_f_starts_as_with_a_constant_step(library, depth, identity):
    init_cfg = [dict(type='Kaiming', layer='Conv2d'),
                dict(type='Constant', val=1, layer='BatchNorm2d')]
    constant = network(
        library, type='StepResNet', depth=depth, init_cfg=init_cfg,
        step=dict(type='ConstantStep', value=.3), zero_init_residual=False,
        step_blocks='identity' if identity else 'all')
    last = dict(type='LastNorm', val=.3, identity=identity)
    ours = network(library, type='ResNet', depth=depth, init_cfg=[
        *init_cfg, last], zero_init_residual=False)
    images = torch.randn(1, 3, 64, 64)
    with torch.no_grad():
        for expected, got in zip(constant(images), ours(images)):
            assert torch.allclose(got, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize('cfg', [
    dict(type='ResNet', depth=18),  # mmpretrain's zero_init_residual is True
    dict(type='MobileNetV2')])
def test_a_start_that_would_be_lost(cfg):
    registry = pytest.importorskip('mmpretrain.registry').MODELS
    model = registry.build(dict(cfg, init_cfg=dict(type='LastNorm', val=.3)))
    with pytest.raises(ValueError, match='LastNorm: .*zero_init_residual'):
        model.init_weights()
