import sys

import pytest
import torch

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


def test_arguments_go_to_timm():
    step = build_step(
        dict(type='TimmAttention', name='se', rd_ratio=.5, add_maxpool=True),
        CHANNELS)
    assert step.attention.fc1.out_channels == 16 and step.attention.add_maxpool


@pytest.mark.parametrize('wrong, match', [
    (dict(name='se', no_ratio=1), 'no_ratio'),
    (dict(name='gc', fuse_add=True), 'step.fuse_add'),
    (dict(name='coord', has_skip=True), 'step.has_skip'),
    *((dict(name=name), r'step\.name')
      for name in ('gca', 'SE', ['se'], None))])
def test_wrong_arguments(wrong, match):
    with pytest.raises(ValueError, match=match):
        build_step(dict(type='TimmAttention', **wrong), CHANNELS)


def test_timm_is_imported_when_one_is_built(monkeypatch):
    monkeypatch.setitem(sys.modules, 'timm.layers', None)
    with pytest.raises(ImportError, match='pip install timm'):
        TimmAttention(CHANNELS, 'se')
