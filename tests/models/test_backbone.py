import pytest
import torch

from stepnet_mm.models.fusion import can_fuse
from stepnet_mm.steps import StepAdaptor

pytestmark = pytest.mark.core


def build(models, depth=18, **kwargs):
    small = dict(base_channels=16, stem_channels=16)
    return models.build(dict(
        type='StepResNet', depth=depth, out_indices=(0, 1, 2, 3), **small,
        **kwargs))


def placed(net):
    return [[i for i, block in enumerate(stage) if block.step is not None]
            for stage in net._stages()]


def test_left_out_it_is_step_adaptor_in_identity_blocks(models):
    net = build(models)
    assert placed(net) == [[0, 1], [1], [1], [1]]
    assert all(type(step) is StepAdaptor for step in net.steps())


def test_a_step_that_sees_f_alone_goes_everywhere(models):
    assert placed(build(models, step='ToyStep')) == [[0, 1]] * 4


def test_all(models):
    assert placed(build(models, step_blocks='all')) == [[0, 1]] * 4


def test_by_index(models):
    chosen = [[1], [], [0, 1], [0]]
    assert placed(build(models, step_blocks=chosen)) == chosen


@pytest.mark.parametrize('wrong', [
    'some', [], [[0]], [[0], [2], [0], [0]], [[-1], [], [], []],
    [[0, 0], [], [], []], [[True], [], [], []], [0, 1, 0, 1], 3
])
def test_wrong_step_blocks(models, wrong):
    with pytest.raises(ValueError, match="step_blocks: expected 'identity'"):
        build(models, step_blocks=wrong)


def test_step_blocks_that_choose_none(models):
    with pytest.raises(ValueError, match='step_blocks: expected.*step=None'):
        build(models, step_blocks=[[], [], [], []])
    assert not build(models, step=[None] * 4).steps()


@pytest.mark.parametrize('wrong, match', [
    (dict(depth=20), r'depth: expected one of \[18, 34.*got 20'),
    (dict(fused='no'), "fused: expected.*True, False.*got 'no'"),
    (dict(step=dict(type='StepAdaptor', norm_cfg=dict(type='BNN'))),
     r"norm_cfg: expected a norm layer.*got \{'type': 'BNN'\}.*'SyncBN'")])
def test_wrong_arguments(models, wrong, match):
    with pytest.raises(ValueError, match=match):
        build(models, **wrong)


def test_a_step_for_each_stage(models):
    sizes = (16, 8, 7)
    net = build(
        models,
        step=[
            dict(type='FCAAttention', dct_size=size) for size in sizes
        ] + [None])
    assert placed(net) == [[0, 1]] * 3 + [[]]
    assert [step.dct_size for step in net.steps()] == [16, 16, 8, 8, 7, 7]


def test_each_stage_has_its_steps_own_blocks(models):
    net = build(models, step=['ToyStep', 'StepAdaptor'] * 2)
    assert placed(net) == [[0, 1], [1], [0, 1], [1]]
    chosen = [[1], [0], [], [0, 1]]
    net = build(
        models, step=['ToyStep', 'StepAdaptor'] * 2, step_blocks=chosen)
    assert placed(net) == chosen


def test_a_list_of_another_length(models):
    with pytest.raises(ValueError, match='4 stages.*got a list of 3'):
        build(models, step=['ToyStep'] * 3)


def test_unknown_step(models):
    with pytest.raises(ValueError, match='backbone.step.type.*Foo'):
        build(models, step='Foo')


def test_init_weights_sets_the_steps_to_their_starts(models):
    net = build(
        models,
        init_cfg=[
            dict(type='Kaiming', layer='Conv2d'),
            dict(type='Constant', val=7, layer=['_BatchNorm', 'Conv2d']),
        ],
        step=dict(type='ToyStep', start=.5))
    net.init_weights()
    for step in net.steps():
        assert (step.a.weight == .5).all() and (step.a.bias == 1).all()


@pytest.mark.parametrize('alone', [True, False])
def test_pretrained_steps_are_kept(models, tmp_path, alone):
    source = build(models)
    for step in source.steps():
        torch.nn.init.normal_(step.ie.bias)
    torch.save(source.state_dict(), tmp_path / 'weights.pth')
    load = dict(type='Pretrained', checkpoint=str(tmp_path / 'weights.pth'))
    kaiming = dict(type='Kaiming', layer='Conv2d')
    net = build(models, init_cfg=load if alone else [kaiming, load])
    net.init_weights()
    for ours, theirs in zip(net.steps(), source.steps()):
        for key, value in theirs.state_dict().items():
            assert torch.equal(ours.state_dict()[key], value), key


def test_norm_eval_covers_steps_again_at_every_train(models):
    net = build(models, norm_eval=True)
    for _ in range(2):
        net.train()
        assert not any(step.norm.training for step in net.steps())
        net.eval()
    loose = build(models, norm_eval=False)
    loose.train()
    assert all(step.norm.training for step in loose.steps())


def test_frozen_stages_cover_steps_again_at_every_train(models):
    net = build(
        models, frozen_stages=2, step=dict(type='StepAdaptor', init_step=1),
        norm_eval=False)
    for _ in range(2):
        net.train()
        frozen = net.steps(2)
        assert len(frozen) == 3
        for step in frozen:
            assert not step.norm.training
            assert not any(p.requires_grad for p in step.parameters())
        for step in net.steps()[3:]:
            assert step.norm.training
            assert all(p.requires_grad for p in step.parameters())
        net.eval()


def test_steps_are_frozen_before_the_first_train(models):
    """DDP looks there which parameters train."""
    net = build(models, frozen_stages=2)
    frozen = [p for step in net.steps(2) for p in step.parameters()]
    assert frozen and not any(p.requires_grad for p in frozen)


def test_freezing_fresh_steps_is_an_error_in_training(models):
    net = build(models, frozen_stages=1)
    x = torch.randn(2, 3, 32, 32)
    net.eval()
    net(x)
    net.train()
    with pytest.raises(ValueError, match='frozen_stages=1.*init_step=1'):
        net(x)
    net.load_state_dict(net.state_dict())
    assert len(net(x)) == 4


def test_a_backbone_whose_blocks_are_not_plain_is_refused():
    pytest.importorskip('mmpretrain')
    from mmpretrain.models.backbones import SEResNet

    from stepnet_mm.models.mmpretrain_binding import _StepBackbone

    class StepSEResNet(_StepBackbone, SEResNet):
        pass

    with pytest.raises(TypeError, match='SEBottleneck.*forward of its own'):
        StepSEResNet(50)


GN = dict(type='GN', num_groups=8)
SYNC = dict(type='SyncBN')


@pytest.mark.parametrize('backbone, step_norm, fused', [
    (dict(), 'BatchNorm2d', True),
    (dict(conv_cfg=dict(type='ConvWS')), 'BatchNorm2d', True),
    (dict(norm_cfg=GN), 'BatchNorm2d', False),
    (dict(norm_cfg=GN, conv_cfg=dict(type='ConvWS')), 'BatchNorm2d', False),
    (dict(norm_cfg=GN, conv_cfg=dict(type='ConvAWS')), 'BatchNorm2d', False),
    (dict(norm_cfg=SYNC), 'BatchNorm2d', False),
    (dict(step=dict(type='StepAdaptor', norm_cfg=SYNC)), 'SyncBatchNorm',
     True)])
def test_the_table_of_norms(models, backbone, step_norm, fused, monkeypatch):
    """docs/performance.md, Backbones with other norms."""
    from stepnet_mm.models import fusion
    ends, run = [], fusion._run_by_moments
    monkeypatch.setattr(
        fusion, '_run_by_moments', lambda *a: ends.append(1) or run(*a))
    net = build(models, **backbone)
    assert {type(step.norm).__name__ for step in net.steps()} == {step_norm}
    net.train()
    sum(out.mean() for out in net(torch.randn(2, 3, 32, 32))).backward()
    assert len(ends) == (5 if fused else 0)
    assert all(step.ie.bias.grad is not None for step in net.steps())


def test_sync_bn_covers_the_steps(models):
    from mmengine.model import convert_sync_batchnorm
    net = convert_sync_batchnorm(build(models))
    assert {type(step.norm).__name__
            for step in net.steps()} == {'SyncBatchNorm'}
    assert not can_fuse(net.layer1[0])


def test_one_image_trains(models):
    net = build(models, norm_eval=True)
    net.train()
    for step in net.steps():
        step.norm.train()
    out = net(torch.randn(1, 3, 64, 64))
    assert torch.isfinite(out[-1]).all()


def test_with_cp_gives_the_same_gradients(models):
    net, twin = build(models), build(models, with_cp=True)
    twin.load_state_dict(net.state_dict())
    x = torch.randn(2, 3, 32, 32, requires_grad=True)
    grads = []
    for m in (net, twin):
        m.train()
        m(x)[-1].square().sum().backward()
        grads.append([p.grad.clone() for p in m.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*grads))


@pytest.mark.parametrize('wrong', [5, 9, -2, 'a', 1.5])
def test_frozen_stages_that_are_not_there(models, wrong):
    with pytest.raises(ValueError, match='backbone.frozen_stages: expected '
                       f'an integer from -1 to 4, .* got {wrong!r}'):
        build(models, frozen_stages=wrong)


@pytest.mark.parametrize('wrong', ['yes', 1, 0, None])
def test_fused_is_true_or_false(models, wrong):
    with pytest.raises(ValueError, match='backbone.fused: expected one of'):
        build(models, fused=wrong)
