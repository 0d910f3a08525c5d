"""Bindings to mmdet, mmpretrain and mmseg."""
import pickle

import pytest
import torch
from equality import HRNET, assert_bound, assert_stock, registry

SMALL = dict(base_channels=8, stem_channels=8)
#: As its configs have them; another library's networks dilate otherwise.
DILATED = dict(contract_dilation=True, strides=(1, 2, 1, 1),
               dilations=(1, 1, 2, 4))
NETWORKS = [
    ('mmdet', dict(depth=18, frozen_stages=1)),
    ('mmdet', dict(depth=50, style='caffe', norm_eval=False, with_cp=True)),
    ('mmdet', dict(depth=50, dcn=dict(
        type='DCNv2', deform_groups=1, fallback_on_stride=False),
        stage_with_dcn=(False, True, True, True))),
    ('mmdet', dict(depth=50, plugins=[dict(
        cfg=dict(type='ContextBlock', ratio=1 / 4), position='after_conv3',
        stages=(False, True, True, False))])),
    ('mmdet', dict(
        type='ResNetV1d', depth=18, frozen_stages=1, num_stages=3,
        strides=(1, 2, 2), dilations=(1, 1, 1), out_indices=(0, 1, 2))),
    ('mmdet', dict(type='ResNeXt', depth=50, groups=4, base_width=4)),
    ('mmdet', dict(type='RegNet', frozen_stages=1, arch=dict(
        w0=16, wa=16., wm=2.25, group_w=8, depth=8, bot_mul=1.))),
    ('mmpretrain', dict(depth=18, drop_path_rate=.3)),
    ('mmpretrain', dict(type='ResNetV1c', depth=50, frozen_stages=1)),
    ('mmpretrain', dict(type='ResNetV1d', depth=18, with_cp=True)),
    ('mmpretrain', dict(type='ResNet_CIFAR', depth=18)),
    ('mmpretrain', dict(
        type='ResNeXt', depth=50, groups=4, width_per_group=4)),
    ('mmseg', dict(depth=50, multi_grid=(1, 2, 4), **DILATED)),
    *(('mmseg', dict(type=kind, depth=50, **DILATED))
      for kind in ('ResNetV1c', 'ResNetV1d', 'ResNeXt'))]


@pytest.mark.core
@pytest.mark.parametrize('library, kwargs', NETWORKS)
def test_no_step_and_a_step_of_one_keep_the_network(library, kwargs):
    assert_bound(registry(library), **SMALL, **kwargs)


@pytest.mark.core
def test_hrnet():
    models = registry('mmdet')
    assert_bound(models, 'HRNet', 64, extra=HRNET, norm_eval=False)
    net = models.build(dict(
        type='StepHRNet', extra=HRNET, step_blocks=[[1], [], [0, 11], [7]]))
    steps = net.steps()
    assert [name for name, module in net.named_modules()
            if module in steps] == [
        'layer1.1.step', 'stage3.0.branches.0.0.step',
        'stage3.1.branches.2.1.step', 'stage4.0.branches.3.1.step']
    pickle.loads(pickle.dumps(net))


def test_the_step_scales_what_a_plugin_gives():
    net = registry('mmdet').build(
        dict(type='StepResNet', depth=50, **SMALL, step_blocks='all',
             step=dict(type='StepAdaptor', init_step=.5), plugins=[
                 dict(cfg=dict(type='ToyStep'), position='after_conv3')]))
    net.eval()
    for block in (net.layer2[0], net.layer2[1]):  # with a projection, without
        x = torch.randn(2, block.conv1.in_channels, 8, 8)
        f = block.toy_step(block.norm3(block._convolve(x)))
        assert torch.equal(block.residual(x), f)
        identity = x if block.downsample is None else block.downsample(x)
        torch.testing.assert_close(block(x), torch.relu(identity + .5 * f))


@pytest.mark.core
def test_drop_path_comes_after_the_step():
    net = registry('mmpretrain').build(
        dict(type='StepResNet', depth=18, **SMALL, drop_path_rate=.5,
             step='ToyStep'))
    order = []
    block = net.layer4[1]
    block.step.register_forward_hook(lambda *_: order.append('step'))
    block.drop_path.register_forward_hook(lambda *_: order.append('drop'))
    net(torch.randn(2, 3, 32, 32))
    assert order == ['step', 'drop']


@pytest.mark.core
def test_resnet_cifar_without_step_is_the_stock_network():
    models = registry('mmpretrain')

    class Stock(models.get('ResNet_CIFAR')):
        arch_settings = {11: (models.get('ResNet').arch_settings[50][0],
                              (1, 1, 1))}

    common = dict(stem_channels=16, base_channels=16, num_stages=3,
                  strides=(1, 2, 2), dilations=(1, 1, 1), out_indices=(2, ))
    assert_stock(Stock(11, **common), models.build(
        dict(type='StepResNetCIFAR', step=None, depth=11)))
