import ast
import sys

import pytest
import torch

from stepnet_mm.recording import TrajectoryRecorder
from stepnet_mm.steps import TimmAttention, build_step
from stepnet_mm.steps.timm_attention import GATES

timm = pytest.importorskip('timm.layers')
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


@pytest.mark.parametrize('name', [
    pytest.param(name, marks=[pytest.mark.core][i:])
    for i, name in enumerate(GATES)])
def test_is_the_module_of_timm_bit_for_bit(name):
    step = make(name)
    theirs = timm.create_attn(name, CHANNELS)
    f = torch.randn(2, CHANNELS, 6, 5)
    for training in (True, False):
        theirs.load_state_dict(step.attention.state_dict())
        expected = theirs.train(training)(f)
        torch.testing.assert_close(
            step.train(training)(f), expected, atol=0, rtol=0)
    torch.testing.assert_close(
        step(torch.randn_like(f), f), expected, atol=0, rtol=0)
    out, delta = observe(step, f)
    assert delta.dim() == 4 and delta.min() >= 0
    assert delta.shape == step.step_size(None, f).shape
    torch.testing.assert_close(out, f * delta, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(out, expected, atol=0, rtol=0)
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


def test_as_step_of_a_backbone_and_in_recordings():
    models = pytest.importorskip('mmpretrain.registry').MODELS
    net = models.build(dict(
        type='StepResNet', depth=18, num_stages=2, strides=(1, 2),
        dilations=(1, 1), out_indices=(0, 1), base_channels=8,
        stem_channels=8, step=dict(type='TimmAttention', name='eca')))
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


def test_arguments_go_to_timm():
    step = build_step(
        dict(type='TimmAttention', name='se', rd_ratio=.5, add_maxpool=True),
        CHANNELS)
    assert step.attention.fc1.out_channels == 16 and step.attention.add_maxpool
    with pytest.raises(ValueError, match='no_ratio'):
        build_step(dict(type='TimmAttention', name='se', no_ratio=1), CHANNELS)
    for name, adding in (('gc', 'fuse_add'), ('coord', 'has_skip')):
        with pytest.raises(ValueError, match=f'step.{adding}'):
            TimmAttention(CHANNELS, name, **{adding: True})


@pytest.mark.parametrize('name', ['gca', 'SE', ['se'], None])
def test_another_module_is_refused(name):
    with pytest.raises(ValueError, match=r'step\.name'):
        build_step(dict(type='TimmAttention', name=name), CHANNELS)


def test_timm_is_imported_when_one_is_built(monkeypatch):
    path = sys.modules[TimmAttention.__module__].__file__
    top = [node for node in ast.parse(open(path).read()).body
           if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert top and not any('timm' in ast.unparse(node) for node in top)
    monkeypatch.setitem(sys.modules, 'timm.layers', None)
    with pytest.raises(ImportError, match='pip install timm'):
        TimmAttention(CHANNELS, 'se')
