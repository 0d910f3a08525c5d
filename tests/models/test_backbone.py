import pytest
import torch
from equality import BOTH

from stepnet_mm.models import step_block_class
from stepnet_mm.models.fusion import can_fuse


def build(models, **kwargs):
    return models.build(dict(
        type='StepResNet', depth=18, out_indices=(0, 1, 2, 3),
        base_channels=16, stem_channels=16, **kwargs))


@pytest.mark.parametrize('kwargs, expected', [
    (dict(), [[0, 1], [1], [1], [1]]),
    (dict(step='ToyStep'), [[0, 1]] * 4),
    (dict(step_blocks='all'), [[0, 1]] * 4),
    (dict(step_blocks=[[1], [], [0, 1], [0]]), [[1], [], [0, 1], [0]]),
    (dict(step=['ToyStep', 'StepAdaptor'] * 2), [[0, 1], [1], [0, 1], [1]]),
    (dict(step=[None] * 4), [[]] * 4)])
def test_which_blocks_have_a_step(models, kwargs, expected):
    net = build(models, **kwargs)
    assert [[i for i, block in enumerate(stage) if block.step is not None]
            for stage in net._stages()] == expected


@pytest.mark.parametrize('kind, wrong, key', [
    *(('ResNet', dict(step_blocks=wrong), r'step_blocks: .*identity')
      for wrong in (
        'some', 5, [[0]], [[0], [2], [0], [0]], [[-1], [], [], []],
        [[0], 1, [], []])),
    ('ResNet', dict(step_blocks=[[]] * 4), 'step_blocks: .*step=None'),
    ('ResNet', dict(step=['ToyStep'] * 3), 'step: .*4 stages.*3'),
    ('ResNet', dict(step='Foo'), 'step.type.*Foo'),
    ('ResNet', dict(step=dict(
        type='StepAdaptor', norm_cfg=dict(type='BNN'))),
     "step.norm_cfg: .*'BNN'.*'SyncBN'"),
    *(('ResNet', dict(norm_cfg=wrong), f'norm_cfg: .*{key}')
      for wrong, key in ((dict(type='GN'), 'num_groups=32'),
                         (dict(type='BNN'), 'BNN'), (dict(), 'type'),
                         (dict(type='GN', num_groups=7), 'num_groups'),
                         (dict(type='BN', epsilon=1), 'epsilon'))),
    ('ResNetCIFAR', dict(downsample_norm_cfg=dict(type='BNN')),
     'downsample_norm_cfg: .*BNN'),
    ('ResNetCIFAR', dict(depth=50), 'depth: .*50.*StepResNet_CIFAR'),
    ('ResNetCIFAR', dict(depth=29, block='basic'), 'depth: .*6n'),
    ('ResNetCIFAR', dict(block='wide'), "block: .*'wide'"),
    ('ResNetCIFAR', dict(preact=True, zero_init_residual=True),
     'preact: .*zero_init'),
    ('ResNetCIFAR', dict(preact=True, downsample_norm_cfg=dict(type='BN')),
     'preact: .*downsample_norm_cfg'),
    ('VisionTransformer', dict(step_mode='both'),
     "step_mode: .*'gate'.*'both'")])
def test_wrong_arguments(models, kind, wrong, key):
    depth = dict(ResNet=dict(depth=18), ResNetCIFAR=dict(depth=20))
    with pytest.raises(ValueError, match=f'backbone.{key}'):
        models.build({'type': f'Step{kind}', **depth.get(kind, {}), **wrong})


@pytest.mark.core
@BOTH
def test_init_weights_sets_the_steps_to_their_starts(models):
    net = build(models, step=dict(type='ToyStep', start=.5), init_cfg=dict(
        type='Constant', val=7, layer=['_BatchNorm', 'Conv2d']))
    net.init_weights()
    for step in net.steps():
        assert (step.a.weight == .5).all() and (step.a.bias == 1).all()


@pytest.mark.core
@BOTH
@pytest.mark.parametrize('norm_eval', [True, False])
def test_train_leaves_norms_and_frozen_steps_as_they_should_be(
        models, norm_eval):
    net = build(
        models, frozen_stages=2, step=dict(type='StepAdaptor', init_step=1),
        norm_eval=norm_eval)
    for _ in range(2):
        # DDP looks before the first train() which parameters train.
        assert [{p.requires_grad for p in step.parameters()}
                for step in net.steps()] == [{False}] * 3 + [{True}] * 2
        net.train()
        assert [step.norm.training for step in net.steps()] == (
            [False] * 3 + [not norm_eval] * 2)
        net.eval()


@pytest.mark.core
def test_blocks_that_are_not_plain_are_refused():
    resnet = pytest.importorskip('mmpretrain.models.backbones.resnet')
    from mmpretrain.models.backbones.seresnet import SEBottleneck
    with pytest.raises(TypeError, match='SEBottleneck'):
        step_block_class(SEBottleneck, (resnet.Bottleneck, ))


SYNC = dict(type='SyncBN')


@pytest.mark.core
@pytest.mark.parametrize('backbone, step_norm, fused', [
    (dict(), 'BatchNorm2d', True),
    (dict(norm_cfg=dict(type='GN', num_groups=8),
          conv_cfg=dict(type='ConvAWS')), 'BatchNorm2d', False),
    (dict(norm_cfg=SYNC), 'BatchNorm2d', False),
    (dict(step=dict(type='StepAdaptor', norm_cfg=SYNC)), 'SyncBatchNorm',
     True)])
def test_the_table_of_norms(models, backbone, step_norm, fused):
    """docs/performance.md, Backbones with other norms."""
    net = build(models, **backbone)
    net.train()
    assert {type(step.norm).__name__ for step in net.steps()} == {step_norm}
    assert can_fuse(net.layer1[0], torch.zeros(1)) == fused
    assert len(net(torch.randn(2, 3, 32, 32))) == 4
