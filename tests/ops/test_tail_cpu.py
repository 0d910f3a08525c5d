import pytest
import torch
from kernels import SHAPES, assert_kernels

from stepnet_mm.ops import tail_cpu


@pytest.mark.parametrize('shape, dtype', [
    *((shape, torch.float32) for shape in SHAPES),
    (SHAPES[1], torch.float64),
    pytest.param(SHAPES[1], torch.bfloat16, marks=pytest.mark.core),
    pytest.param(SHAPES[1], torch.float16, marks=pytest.mark.since_torch(
        '2.5', 'networks in float16 on a CPU'))])
def test_as_the_reference(shape, dtype):
    assert_kernels(tail_cpu, shape, dtype)


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


def test_a_constant_map_has_no_variance():
    z = torch.full((2, 3, 5, 5), 3.7)
    assert (tail_cpu.moments(z, True)[1] <= 1e-12).all()
    assert not tail_cpu.moments(torch.zeros(2, 3, 5, 5), True)[1].any()


def test_input_gradients_writes_over_the_masked_gradient():
    g, z = torch.randn(2, 2, 3, 4, 4)
    table = torch.ones(2, 3, 1, 1)
    _, dx = tail_cpu.input_gradients(g, z, table, table, table, table)
    assert dx.data_ptr() == g.data_ptr()
