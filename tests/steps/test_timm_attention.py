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


@pytest.mark.parametrize('name', [
    pytest.param(name, marks=[pytest.mark.core][i:])
    for i, name in enumerate(GATES)])
def test_is_the_module_of_timm_bit_for_bit(name):
    step, seen = make(name), []
    theirs = timm.create_attn(name, CHANNELS)
    f = torch.randn(2, CHANNELS, 6, 5)
    for training in (True, False):
        theirs.load_state_dict(step.attention.state_dict())
        expected = theirs.train(training)(f)
        assert torch.equal(step.train(training)(torch.rand(1), f), expected)
    with step.delta.register_forward_hook(
            lambda module, args, output: seen.append(output)):
        assert torch.equal(step(f), expected)
    delta, = seen
    assert delta.dim() == 4 and delta.min() >= 0
    torch.testing.assert_close(f * delta, expected, atol=1e-6, rtol=1e-6)
    assert not any(m._forward_hooks for m in step.modules())


def test_arguments_go_to_timm():
    assert make('se', rd_ratio=.5).attention.fc1.out_channels == CHANNELS / 2


@pytest.mark.parametrize('wrong, match', [
    (dict(name='se', no_ratio=1), 'no_ratio'),
    (dict(name='gc', fuse_add=True), r'step\.name: .*fuse_add'),
    ({}, r'step\.name: ')])
def test_wrong_arguments(wrong, match):
    with pytest.raises(ValueError, match=match):
        build_step(dict(type='TimmAttention', **wrong), CHANNELS)
