"""Bindings to mmpretrain; the twin file does the same for mmdet."""
import pytest
import torch
from equality import assert_bound, assert_stock, count, undrawn

pytest.importorskip('mmpretrain')
from mmpretrain.registry import MODELS  # noqa: E402

SMALL = dict(base_channels=8, stem_channels=8)
VARIANTS = dict(
    r18_drop=dict(depth=18, drop_path_rate=.3),
    r50=dict(depth=50, style='caffe', frozen_stages=1),
    v1c=dict(type='ResNetV1c', depth=18, frozen_stages=1),
    v1d=dict(type='ResNetV1d', depth=18, with_cp=True),
    cifar=dict(type='ResNet_CIFAR', depth=18),
    x50=dict(type='ResNeXt', depth=50, groups=4, width_per_group=4,
             drop_path_rate=.2),
)


@pytest.mark.core
@pytest.mark.parametrize('name', VARIANTS)
def test_no_step_and_a_step_of_one_keep_the_network(name):
    assert_bound(
        MODELS, **SMALL, out_indices=(0, 1, 2, 3), **VARIANTS[name])


@pytest.mark.core
def test_drop_path_comes_after_the_step():
    net = MODELS.build(
        dict(type='StepResNet', depth=18, **SMALL, drop_path_rate=.5,
             step='ToyStep'))
    order = []
    block = net.layer4[1]
    block.step.register_forward_hook(lambda *_: order.append('step'))
    block.drop_path.register_forward_hook(lambda *_: order.append('drop'))
    net(torch.randn(2, 3, 32, 32))
    assert order == ['step', 'drop']


def cifar(step='StepAdaptor', **kwargs):
    return MODELS.build(dict(type='StepResNetCIFAR', step=step, **kwargs))


@pytest.mark.parametrize('name, millions', dict(
    plain=21.798, SE=21.959, CBAM=21.960, SRM=21.813, FCA=21.955, SGE=21.800,
    StepAdaptor=21.815).items())
def test_parameters_of_a_resnet_34_on_imagenet(name, millions):
    step = dict(plain=None, StepAdaptor=name).get(name, f'{name}Attention')
    with undrawn():
        net = MODELS.build(dict(type='StepResNet', depth=34, step=step))
    assert round((count(net) + 512 * 1000 + 1000) / 1e6, 3) == millions


@pytest.mark.parametrize('depth, block, preact, channels, blocks', [
    (29, 'bottleneck', False, 256, 3), (11, 'bottleneck', True, 256, 1),
    (20, 'basic', False, 64, 3)])
def test_resnet_cifar_shapes(depth, block, preact, channels, blocks):
    net = cifar(None, depth=depth, block=block, preact=preact,
                out_indices=(0, 1, 2))
    assert [len(stage) for stage in net._stages()] == [blocks] * 3
    outs = net(torch.randn(2, 3, 32, 32))
    assert [tuple(out.shape[1:]) for out in outs] == [
        (channels // 4, 32, 32), (channels // 2, 16, 16), (channels, 8, 8)]


@pytest.mark.parametrize('preact', [False, True])
def test_resnet_cifar_starts_as_published(preact):
    zero = cifar(depth=20, zero_init_residual=not preact)
    zero.init_weights()
    assert (zero.layer2[1].bn3.weight == preact).all()
    net = cifar(depth=29, preact=preact)
    net.init_weights()
    conv = net.layer3[1].conv2.weight
    assert conv.std().item() == pytest.approx((2 / (9 * 64))**.5, rel=.05)
    assert (net.layer3[1].bn3.weight == 1).all()
    assert (net.layer3[1].step.ie.bias == -1).all()
    assert not preact or (net.end_norm.weight == 1).all()


@pytest.mark.core
def test_resnet_cifar_without_step_is_the_stock_network():
    class Stock(MODELS.get('ResNet_CIFAR')):
        arch_settings = {11: (MODELS.get('ResNet').arch_settings[50][0],
                              (1, 1, 1))}

    common = dict(stem_channels=16, base_channels=16, num_stages=3,
                  strides=(1, 2, 2), dilations=(1, 1, 1), out_indices=(2, ))
    assert_stock(Stock(11, **common), cifar(None, depth=11))


def test_iebn_layout():
    net = cifar(None, depth=11, norm_cfg=dict(type='IEBN'),
                downsample_norm_cfg=dict(type='BN'))
    assert type(net.bn1).__name__ == 'IEBN'
    assert type(net.layer1[0].bn3).__name__ == 'IEBN'
    assert type(net.layer1[0].downsample[-1]).__name__ == 'BatchNorm2d'


@pytest.mark.parametrize('wrong, key', [
    (dict(downsample_norm_cfg=dict(type='BNN')),
     'downsample_norm_cfg: .*BNN'),
    (dict(depth=50), 'depth: .*50.*StepResNet_CIFAR'),
    *((dict(depth=depth), 'depth: .*9n') for depth in (163, 2)),
    (dict(depth=29, block='basic'), 'depth: .*6n'),
    (dict(block='wide'), "block: .*'wide'"),
    (dict(preact=True, zero_init_residual=True), 'preact: .*zero_init'),
    (dict(preact=True, downsample_norm_cfg=dict(type='BN')),
     'preact: .*downsample_norm_cfg')])
def test_wrong_cifar_arguments(wrong, key):
    with pytest.raises(ValueError, match=f'backbone.{key}'):
        cifar(**{'depth': 20, **wrong})
