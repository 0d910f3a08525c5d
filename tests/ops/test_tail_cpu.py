import pytest
import torch

from stepnet_mm.ops import tail_cpu
from stepnet_mm.ops.tail_reference import Gradients, Moments


@pytest.mark.parametrize('offset', [0, 10, 1e3, 1e5])
def test_a_large_mean_costs_the_variance_nothing(offset):
    """Nor does a flat sample: SRM reads each sample's variance."""
    torch.manual_seed(0)
    z = torch.randn(4, 8, 20, 20) + offset
    if not offset:
        z[2, 3] = z[2, 3] * 1e-3 + 5
    _, var = tail_cpu.moments(z, True)
    exact = z.double().var((2, 3), correction=0, keepdim=True)
    torch.testing.assert_close(var.double(), exact, rtol=1e-5, atol=0)
    constant = torch.full((2, 3, 5, 5), float(offset) + .7)
    assert (tail_cpu.moments(constant, True)[1] <= 1e-12).all()


def test_input_gradients_writes_over_the_masked_gradient():
    g, z = torch.randn(2, 2, 3, 4, 4)
    table, row = torch.ones(2, 3, 1, 1), torch.ones(1, 3, 1, 1)
    m = Moments(*[table] * 4, *[row] * 5)
    dx = tail_cpu.input_gradients(
        g, z, table, table, table, m, Gradients(identity_mean=table))[1]
    assert dx.data_ptr() == g.data_ptr()
