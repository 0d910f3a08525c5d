import math

import pytest
import torch

from stepnet_mm.stiffness import stiffness_aware_index, stiffness_index


def test_si_is_the_largest_real_part_by_modulus():
    basis = torch.eye(3).double() + .3 * torch.randn(3, 3).double()
    for eigenvalues in ([-1., -1000., 2.], [-5., 2., 3.], [0., 0., 0.]):
        jacobian = basis @ torch.diag(torch.tensor(
            eigenvalues).double()) @ torch.linalg.inv(basis)
        assert stiffness_index(jacobian).item() == pytest.approx(
            max(map(abs, eigenvalues)), rel=1e-9, abs=1e-9)
    # Damped, and a pure rotation.
    for decay in (3., 0.):
        jacobian = torch.tensor([[-decay, 50.], [-50., -decay]])
        assert stiffness_index(jacobian.double()).item() == pytest.approx(
            decay, abs=1e-12)
    jacobian = torch.diag_embed(torch.arange(-12., 0.).reshape(2, 3, 2))
    expected = [[12., 10., 8.], [6., 4., 2.]]
    assert stiffness_index(jacobian + 0j).tolist() == expected


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
    torch.testing.assert_close(quotient, torch.tensor([[3e5]]))
    # In bfloat16 these times would coincide.
    states = torch.ones(1000, 2, dtype=torch.bfloat16)
    assert not stiffness_aware_index(states, torch.arange(1000.)).any()


@pytest.mark.parametrize('times, match', [
    (torch.arange(2.), 'states, '), (torch.zeros(3, 1), 'states, '),
    ([0., 1., 1.], '^times: '), ([0., math.nan, 1.], '^times: ')])
def test_wrong_input_is_named(times, match):
    with pytest.raises(ValueError, match=match):
        stiffness_aware_index(torch.ones(3, 2), times)
