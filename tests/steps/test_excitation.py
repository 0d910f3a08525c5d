import pytest
import torch

from stepnet_mm.steps.excitation import (
    ChannelConv,
    Excitation,
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


def test_divide():
    assert divide(64, 16, 'reduction') == 4
    with pytest.raises(ValueError, match='groups: .*64 channels.*got True'):
        divide(64, True, 'groups')
