"""Bindings to mmdet; the twin file does the same for mmpretrain."""
import pickle

import pytest
import torch
from equality import assert_bound

pytest.importorskip('mmdet')
from mmdet.registry import MODELS  # noqa: E402

SMALL = dict(base_channels=8, stem_channels=8)
VARIANTS = dict(
    r18=dict(depth=18, frozen_stages=1),
    r50_cp=dict(depth=50, style='caffe', norm_eval=False, with_cp=True),
    r50_dcn=dict(depth=50, dcn=dict(
        type='DCNv2', deform_groups=1, fallback_on_stride=False),
        stage_with_dcn=(False, True, True, True)),
    r50_plugin=dict(depth=50, plugins=[dict(
        cfg=dict(type='ContextBlock', ratio=1 / 4), position='after_conv3',
        stages=(False, True, True, False))]),
    v1d=dict(type='ResNetV1d', depth=18, frozen_stages=1, num_stages=3,
             strides=(1, 2, 2), dilations=(1, 1, 1), out_indices=(0, 1, 2)),
    x50=dict(type='ResNeXt', depth=50, groups=4, base_width=4),
    regnet=dict(type='RegNet', frozen_stages=1, arch=dict(
        w0=16, wa=16., wm=2.25, group_w=8, depth=8, bot_mul=1.)),
)
#: One bottleneck stage of two blocks; then one, two and one modules of 2, 3
#: and 4 branches with two basic blocks each.
HRNET = {f'stage{n}': dict(
    num_modules=modules, num_branches=n, block='BASIC', num_blocks=(2, ) * n,
    num_channels=(8, 16, 32, 64)[:n])
    for n, modules in ((1, 1), (2, 1), (3, 2), (4, 1))}
HRNET['stage1'].update(block='BOTTLENECK')


@pytest.mark.core
@pytest.mark.parametrize('name', VARIANTS)
def test_no_step_and_a_step_of_one_keep_the_network(name):
    assert_bound(MODELS, **SMALL, **VARIANTS[name])


@pytest.mark.core
def test_hrnet():
    assert_bound(MODELS, 'HRNet', 64, extra=HRNET, norm_eval=False)
    net = MODELS.build(dict(
        type='StepHRNet', extra=HRNET,
        step_blocks=[[1], [], [0, 11], [7]])).train()
    steps = net.steps()
    assert [name for name, module in net.named_modules()
            if module in steps] == [
        'layer1.1.step', 'stage3.0.branches.0.0.step',
        'stage3.1.branches.2.1.step', 'stage4.0.branches.3.1.step']
    # The mean over space is taken where the next block of a branch needs it.
    every = MODELS.build(dict(type='StepHRNet', extra=HRNET))
    assert [block.next_needs_mean for stage in every._stages()
            for block in stage] == [True, False] * 13
    pickle.loads(pickle.dumps(every))


@pytest.mark.parametrize('kind, wrong, key', [
    ('StepResNet', dict(stage=(True, ) * 4), 'plugins: .*cfg, position'),
    *((kind, dict(cfg=dict(type='StepAdaptor')), 'backbone.step, as in')
      for kind in ('ResNet', 'StepResNet'))])
def test_wrong_plugins(kind, wrong, key):
    plugin = dict(cfg=dict(type='ToyStep'), position='after_conv3')
    with pytest.raises(ValueError, match=key):
        MODELS.build(dict(
            type=kind, depth=50, plugins=[{**plugin, **wrong}]))


def test_the_step_scales_what_a_plugin_gives():
    net = MODELS.build(
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
        block(x).sum().backward()
        assert block.toy_step.a.weight.grad is not None
        assert block.step.ie.bias.grad is not None
