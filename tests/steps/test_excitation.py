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


def test_one_shape_in_and_out():
    z = torch.randn(2, 8, 1, 1)
    for part in (Excitation(8, 2, True), ChannelConv(3)):
        assert part(z).shape == z.shape
    assert torch.equal(InstanceEnhancement(8)(z), torch.full_like(z, -1))


def test_a_gate_is_init_gate_where_the_logits_are_zero():
    for start in (.1, .9):
        gate = Gate(start)
        torch.testing.assert_close(
            gate(torch.zeros(2, 8, 1, 1)), torch.full((2, 8, 1, 1), start))
        assert not gate.state_dict()
    logits = torch.randn(100)
    assert torch.equal(Gate(None)(logits), logits.sigmoid())


@pytest.mark.parametrize('wrong', [0., 1., True, '0.5', math.nan])
def test_wrong_init_gate(wrong):
    with pytest.raises(ValueError, match='init_gate: '):
        Gate(wrong)


def test_divide():
    assert divide(64, 16, 'reduction') == 4
    for wrong in (0, -4, 3, 2., 128, None, True):
        with pytest.raises(ValueError, match=f'groups: .*64 .*got {wrong}'):
            divide(64, wrong, 'groups')
