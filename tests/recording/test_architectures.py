"""NSI of the libraries' networks against values taken by other means."""
import pytest
import torch
import torchvision
from torch import nn

from stepnet_mm.recording import TrajectoryRecorder, find_residual_blocks
from stepnet_mm.stiffness import neural_stiffness_index

SMALL = dict(base_channels=8, stem_channels=8)
NETWORKS = [
    # ResNets with an activation after the sum.
    ('mmdet', dict(type='ResNet', depth=50, **SMALL)),
    ('mmdet', dict(type='Res2Net', depth=50, scales=4, base_width=4,
                   **SMALL)),
    ('mmpretrain', dict(type='RegNet', arch='regnetx_400mf')),
    ('mmpretrain', dict(type='StepResNet', depth=50, step='SEAttention',
                        **SMALL)),
    ('mmpretrain', dict(type='SEResNet', depth=50, **SMALL)),
    ('torchvision', dict(type='resnet18')),
    ('timm', dict(type='seresnet18', zero_init_last=False)),
    # Without one.
    ('mmpretrain', dict(
        type='StepVisionTransformer', img_size=32, patch_size=8, arch=dict(
            embed_dims=32, num_layers=4, num_heads=4,
            feedforward_channels=64))),
    ('mmpretrain', dict(type='SelfAttentionNet', embed_dims=32, num_layers=3,
                        feedforward_channels=48, step='StepAdaptor')),
    ('mmdet', dict(type='SwinTransformer', embed_dims=24, window_size=2)),
    ('mmpretrain', dict(type='ConvNeXt', arch='atto')),
]
#: The class of the gate that counts as Δt.
GATES = dict(StepResNet='SEAttention', SEResNet='SELayer')


def build(library, type, **kwargs):
    if library == 'torchvision':
        return torchvision.models.get_model(type).eval()
    if library == 'timm':
        timm = pytest.importorskip('timm')
        return timm.create_model(type, **kwargs).eval()
    model = pytest.importorskip(f'{library}.registry').MODELS.build(
        dict(kwargs, type=f'{library}.{type}'))
    for module in model.modules():  # residuals that start at 0 say nothing
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, .5, 1.5)
    model.eval()
    return model


def observe(block):
    """x_t, x_t + f Δt and Δt of a block, by other hooks than ours."""
    seen, module = {}, block.module
    activations = [getattr(module, name) for name in ('relu', 'act3', 'act2')
                   if hasattr(module, name)]
    module.register_forward_pre_hook(
        lambda _, args: seen.update(x=args[0].clone()))
    if activations:  # the last call's input stays
        activations[0].register_forward_pre_hook(
            lambda _, args: seen.update(sum=args[0].clone()))
    else:
        module.register_forward_hook(
            lambda _, args, output: seen.update(sum=output.clone()))
    if block.step:
        block.step.delta.register_forward_hook(
            lambda _, args, output: seen.update(step=output.clone()))
    return seen


@pytest.mark.core
@pytest.mark.parametrize(
    'library, cfg', NETWORKS,
    ids=[f"{library}-{cfg['type']}" for library, cfg in NETWORKS])
def test_networks(library, cfg):
    model = build(library, **cfg)
    blocks = [b for b in find_residual_blocks(model) if b.position]
    for block in blocks:
        gate = type(block.step.module).__name__ if block.step else None
        assert gate == GATES.get(cfg['type'])
    seen = [observe(block) for block in blocks]
    edge = getattr(model, 'img_size', (32, 32))[0]
    with TrajectoryRecorder(model) as recorder, torch.no_grad():
        model(torch.randn(2, 3, edge, edge))
    assert recorder.definition == 'residual'
    stages = recorder.stage.tolist()
    assert stages == sorted(stages)
    if cfg['type'] not in ('StepVisionTransformer', 'SelfAttentionNet'):
        assert {*stages} == {*range(5 - len({*stages}), 5)}
    expected = torch.stack([
        neural_stiffness_index(s['x'], s['sum'], s.get('step', 1.))
        for s in seen
    ], 1)
    assert (expected > 0).all()
    torch.testing.assert_close(recorder.nsi, expected, rtol=1e-3, atol=0)
    steps = [s['step'].flatten(1).mean(1) if 'step' in s else
             torch.full((2, ), torch.nan) for s in seen]
    torch.testing.assert_close(
        recorder.step, torch.stack(steps, 1), equal_nan=True)


@pytest.mark.core
def test_a_projected_identity_is_the_state_where_the_last_block_projects():
    layers = pytest.importorskip('mmdet.models.layers')
    blocks = pytest.importorskip('mmdet.models.backbones.resnet')
    stage = layers.ResLayer(
        blocks.BasicBlock, 4, 8, 2, downsample_first=False).eval()
    last, = [b for b in find_residual_blocks(stage) if b.position]
    seen = observe(last)
    with TrajectoryRecorder(stage) as recorder, torch.no_grad():
        stage(torch.randn(2, 4, 8, 8))
        identity = stage[1].downsample(seen['x'])
    torch.testing.assert_close(
        recorder.nsi[:, 0], neural_stiffness_index(identity, seen['sum']),
        rtol=1e-3, atol=0)


@pytest.mark.core
@pytest.mark.parametrize('library, name, stages', [
    ('torchvision', 'convnext_tiny', [3, 3, 9, 3]),
    ('torchvision', 'vit_b_16', [12]),
    ('timm', 'convnext_atto', [2, 2, 6, 2]),
    ('timm', 'vit_tiny_patch16_224', [12]),
    ('timm', 'resnetv2_50', [3, 4, 6, 3])])  # in pre-activation
def test_other_networks_of_torchvision_and_timm(library, name, stages):
    with torch.device('meta' if library == 'torchvision' else 'cpu'):
        found = find_residual_blocks(build(library, name))
    assert [b.stage for b in found] == [
        s for s, n in enumerate(stages, 1) for _ in range(n)]
    assert all(b.definition == 'residual' for b in found)
