import ast
import sys

import pytest
import torch
from mmengine.registry import MODELS

from stepnet_mm.recording import TrajectoryRecorder
from stepnet_mm.steps import TimmAttention, build_step
from stepnet_mm.steps.timm_attention import GATES

timm = pytest.importorskip('timm.layers')
pytestmark = pytest.mark.core
CHANNELS = 32


def make(name, **kwargs):
    """A module whose parameters are all away from their starts."""
    step = TimmAttention(CHANNELS, name, **kwargs).eval()
    for parameter in step.parameters():
        torch.nn.init.normal_(parameter, std=.3)
    return step


def observe(step, f):
    """Δt, as it passes through delta."""
    seen = []
    handle = step.delta.register_forward_hook(
        lambda module, args, output: seen.append(output))
    out = step(f)
    handle.remove()
    return out, seen[0]


@pytest.mark.parametrize('name', GATES)
@pytest.mark.parametrize('training', [True, False])
def test_is_the_module_of_timm_bit_for_bit(name, training):
    step = make(name).train(training)
    theirs = timm.create_attn(name, CHANNELS).train(training)
    theirs.load_state_dict(step.attention.state_dict())
    f = torch.randn(2, CHANNELS, 6, 5)
    torch.testing.assert_close(step(f), theirs(f), atol=0, rtol=0)
    torch.testing.assert_close(
        step(torch.randn_like(f), f), step(f), atol=0, rtol=0)


@pytest.mark.parametrize('name', GATES)
def test_the_step_size_is_what_f_is_multiplied_by(name):
    step, f = make(name), torch.randn(2, CHANNELS, 6, 5)
    out, delta = observe(step, f)
    assert delta.dim() == 4 and delta.min() >= 0
    assert delta.shape == step.step_size(None, f).shape
    torch.testing.assert_close(out, f * delta, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(out, step(f), atol=0, rtol=0)
    assert not any(m._forward_hooks for m in step.modules())
    if not name.endswith('cbam') and name not in ('coord', 'ela'):
        assert torch.equal(out, f * delta)


@pytest.mark.parametrize('name', GATES)
def test_learns_and_starts_again(name):
    torch.manual_seed(0)
    fresh = TimmAttention(CHANNELS, name)
    step = make(name).train()
    f = torch.randn(3, CHANNELS, 6, 5, requires_grad=True)
    step(f).square().mean().backward()
    assert f.grad.isfinite().all()
    reached = [p.grad is not None and p.grad.isfinite().all()
               for p in step.attention.parameters()]
    assert all(reached) and reached or name == 'strip'
    for parameter in step.parameters():
        torch.nn.init.constant_(parameter, 7)
    step.init_weights()
    for key, start in fresh.attention.named_parameters():
        again = step.attention.get_parameter(key)
        assert again.abs().max() < 2, key
        assert start.unique().numel() > 1 or start.numel() == 1 or (
            torch.equal(again, start)), key


@pytest.mark.parametrize('depth', [18, 50])
def test_as_step_of_a_backbone_and_in_recordings(models, depth):
    net = models.build(
        dict(type='StepResNet', depth=depth, num_stages=2, strides=(1, 2),
             dilations=(1, 1), out_indices=(0, 1),
             step=dict(type='TimmAttention', name='eca')))
    net.init_weights()
    net.eval()
    f = []
    block = net.layer1[1]
    block.step.register_forward_pre_hook(lambda m, args: f.append(args[-1]))
    with TrajectoryRecorder(net) as recorder, torch.no_grad():
        net(torch.randn(2, 3, 32, 32))
    assert recorder.definition == 'residual'
    assert recorder.step.isfinite().all() and (recorder.step > 0).all()
    _, delta = observe(block.step, f[0])
    torch.testing.assert_close(recorder.step[:, 0],
                               delta.mean((1, 2, 3)).detach())


def test_as_a_plugin_of_a_stock_backbone():
    registry = pytest.importorskip('mmdet.registry')
    plugin = dict(type='TimmAttention', name='cbam', rd_ratio=1 / 8)
    net = registry.MODELS.build(
        dict(type='ResNet', depth=50, num_stages=1, strides=(1, ),
             dilations=(1, ), out_indices=(0, ), plugins=[
                 dict(cfg=plugin, position='after_conv3')]))
    net.init_weights()
    step, = [m for m in net.layer1[0].modules()
             if isinstance(m, TimmAttention)]
    assert step.attention.channel.fc1.out_channels == 32
    net(torch.randn(2, 3, 32, 32))[0].mean().backward()
    assert step.attention.spatial.conv.conv.weight.grad is not None


def test_arguments_go_to_timm():
    step = build_step(
        dict(type='TimmAttention', name='se', rd_ratio=.5, add_maxpool=True),
        CHANNELS)
    assert step.attention.fc1.out_channels == 16 and step.attention.add_maxpool
    with pytest.raises(ValueError, match="timm makes 'se', got 32 channels "
                       r"and {'no_ratio': 1} \(TypeError: .*no_ratio"):
        build_step(dict(type='TimmAttention', name='se', no_ratio=1), CHANNELS)
    for name, adding in (('gc', 'fuse_add'), ('coord', 'has_skip')):
        with pytest.raises(ValueError, match=f'step.{adding}: expected .*'
                           f'got True, with which {name} is no gate'):
            TimmAttention(CHANNELS, name, **{adding: True})


@pytest.mark.parametrize('name', [
    'gca', 'sk', 'splat', 'lambda', 'halo', 'nl', 'ge', 'bat', 'bottleneck',
    'SE', ['se'], None])
def test_what_is_no_gate_is_answered_with_the_list(name):
    with pytest.raises(ValueError, match=r"step.name: expected one of "
                       r"\['cbam', 'ceca', 'coord'.*got"):
        build_step(dict(type='TimmAttention', name=name), CHANNELS)


def test_timm_is_imported_when_one_is_built(monkeypatch):
    path = sys.modules[TimmAttention.__module__].__file__
    top = [node for node in ast.parse(open(path).read()).body
           if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert top and not any('timm' in ast.unparse(node) for node in top)
    monkeypatch.setitem(sys.modules, 'timm.layers', None)
    with pytest.raises(ImportError, match='expected timm .*pip install timm'):
        TimmAttention(CHANNELS, 'se')


def test_is_registered():
    assert MODELS.get('TimmAttention') is TimmAttention
