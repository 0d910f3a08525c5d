"""A start of γ is, at the start, a constant step size."""
import pytest
import torch
from mmengine.registry import MODELS

import stepnet_mm

INIT = [dict(type='Kaiming', layer='Conv2d'),
        dict(type='Constant', val=1, layer='BatchNorm2d')]


def network(library, kind, **kwargs):
    net = MODELS.build(dict(
        type=f'{library}.{kind}', base_channels=8, zero_init_residual=False,
        **kwargs))
    torch.manual_seed(0)
    net.init_weights()
    net.eval()  # mmdet's returns nothing
    return net


@pytest.mark.parametrize('library, depth, identity', [
    ('mmdet', 50, True), ('mmpretrain', 18, False)])
def test_f_starts_as_with_a_constant_step(library, depth, identity):
    constant = network(
        library, 'StepResNet', depth=depth, init_cfg=INIT,
        step=dict(type='ConstantStep', value=.3),
        step_blocks='identity' if identity else 'all')
    last = dict(type='LastNorm', val=.3, identity=identity)
    ours = network(library, 'ResNet', depth=depth, init_cfg=[*INIT, last])
    images = torch.randn(1, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(
            ours(images), constant(images), rtol=1e-4, atol=1e-6)


def test_a_start_that_would_be_lost():
    model = MODELS.build(dict(  # whose zero_init_residual is True
        type='mmpretrain.ResNet', depth=18,
        init_cfg=dict(type='LastNorm', val=.3)))
    with pytest.raises(ValueError, match='LastNorm: .*zero_init_residual'):
        model.init_weights()
