import math

import pytest
import torch

from stepnet_mm.steps.excitation import (
    ChannelConv,
    Excitation,
    Gate,
    InstanceEnhancement,
    divide,
)

pytestmark = pytest.mark.core


@pytest.mark.parametrize('part', [
    Excitation(8, 2, True), ChannelConv(3), InstanceEnhancement(8)])
def test_one_shape_in_and_out(part):
    assert part(torch.randn(2, 8, 1, 1)).shape == (2, 8, 1, 1)


def test_instance_enhancement_starts_at_minus_one():
    z = torch.randn(2, 8, 1, 1)
    assert torch.equal(InstanceEnhancement(8)(z), torch.full_like(z, -1))


@pytest.mark.parametrize('init_gate', [.1, .2689414213699951, .5, .9])
def test_a_gate_is_init_gate_where_the_logits_are_zero(init_gate):
    gate = Gate(init_gate)
    torch.testing.assert_close(
        gate(torch.zeros(2, 8, 1, 1)), torch.full((2, 8, 1, 1), init_gate))
    assert not gate.state_dict() and f'init_gate={init_gate}' in repr(gate)


def test_a_gate_is_a_plain_sigmoid_where_none_is_given():
    logits = torch.randn(100)
    assert torch.equal(Gate(None)(logits), logits.sigmoid())


@pytest.mark.parametrize('wrong', [0., 1., -1., 2, True, '0.5', math.nan])
def test_wrong_init_gate(wrong):
    with pytest.raises(ValueError, match=f'init_gate: .*got {wrong!r}'):
        Gate(wrong)


def test_divide():
    assert divide(64, 16, 'reduction') == 4
    with pytest.raises(ValueError, match='groups: .*64 channels.*got True'):
        divide(64, True, 'groups')
