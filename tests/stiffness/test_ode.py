import math

import pytest
import torch

from stepnet_mm.stiffness import stiffness_aware_index, stiffness_index


def similar(eigenvalues, seed=0):
    """A matrix that is not symmetric, with these real eigenvalues."""
    generator = torch.Generator().manual_seed(seed)
    n = len(eigenvalues)
    basis = torch.eye(n).double() + .3 * torch.randn(
        n, n, generator=generator, dtype=torch.float64)
    return basis @ torch.diag(eigenvalues) @ torch.linalg.inv(basis)


@pytest.mark.parametrize('eigenvalues, expected', [
    ([-1., -1000.], 1000.),
    ([-5., 2., 3.], 5.),
    ([-1., 4., 0.], 4.),
    ([0., 0.], 0.),
])
def test_si_of_linear_systems(eigenvalues, expected):
    eigenvalues = torch.tensor(eigenvalues, dtype=torch.float64)
    for jacobian in (torch.diag(eigenvalues), similar(eigenvalues)):
        assert stiffness_index(jacobian).item() == pytest.approx(
            expected, rel=1e-9, abs=1e-9)


def test_si_takes_the_real_part_and_keeps_leading_axes():
    frequency = 50.
    for decay in (3., 0.):  # damped, and a pure rotation
        jacobian = torch.tensor([[-decay, frequency], [-frequency, -decay]])
        assert stiffness_index(jacobian.double()).item() == pytest.approx(
            decay, abs=1e-12)
    jacobian = torch.diag(torch.tensor([-2 + 7j, 1 - 9j]))
    assert stiffness_index(jacobian).item() == pytest.approx(2)
    jacobian = torch.diag_embed(torch.arange(-12., 0.).reshape(2, 3, 2))
    expected = [[12., 10., 8.], [6., 4., 2.]]
    assert stiffness_index(jacobian).tolist() == expected


def test_sai_with_uneven_times_by_hand():
    states = torch.tensor([[0., 0.], [0., 0.], [3., 4.], [3., 1.]])
    times = [0., 1., 1.5, 3.5]
    assert stiffness_aware_index(states, times).tolist() == pytest.approx(
        [0., math.inf, 3 / 2 / 5])
    quotient = stiffness_aware_index(states, times, simplified=True)
    assert quotient.tolist() == [[0., 0.], [6., 8.], [0., -1.5]]
    assert stiffness_aware_index(states[:1], times[:1]).shape == (0, )


def test_sai_widens_states_and_times():
    states = torch.tensor([[0.], [300.]], dtype=torch.float16)
    quotient = stiffness_aware_index(states, [0, 1e-3], simplified=True)
    assert quotient.dtype == torch.float32
    torch.testing.assert_close(quotient, torch.tensor([[3e5]]))
    # In bfloat16 these times would coincide.
    states = torch.ones(1000, 2, dtype=torch.bfloat16)
    assert not stiffness_aware_index(states, torch.arange(1000.)).any()


@pytest.mark.parametrize('states, times, match', [
    (torch.zeros(3, 2), torch.arange(2.), 'states, '),
    (torch.zeros(3, 2), torch.zeros(3, 1), 'states, '),
    (torch.ones(3, 2), [0., 1., 1.], '^times: '),
    (torch.ones(3, 2), [0., math.nan, 1.], '^times: ')])
def test_wrong_input_is_named(states, times, match):
    with pytest.raises(ValueError, match=match):
        stiffness_aware_index(states, times)
