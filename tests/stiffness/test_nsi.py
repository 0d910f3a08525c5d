import math

import pytest
import torch

from stepnet_mm.stiffness import (
    neural_stiffness_index,
    norm_ratio,
    sample_norm,
    stiffness_aware_index,
    stiffness_index,
)

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize('step, shape', [
    (2, ()), (torch.tensor(.5), ()),
    (torch.tensor([.2, .5, 1.]), (3, 1, 1, 1)),
    (torch.rand(3, 2, 1, 1) + .1, (3, 2, 1, 1)),
    (torch.rand(1, 2, 1, 1) + .1, (1, 2, 1, 1))])
def test_nsi_is_eq_4(step, shape):
    x_t, x_next = torch.randn(2, 3, 2, 4, 5, dtype=torch.float64)
    at = torch.as_tensor(step).double().reshape(shape)
    expected = (((x_next - x_t) / at).square().sum((1, 2, 3))
                / x_t.square().sum((1, 2, 3))).sqrt()
    torch.testing.assert_close(
        neural_stiffness_index(x_t, x_next, step), expected, rtol=1e-12,
        atol=0)


def test_steps_and_states_of_few_numbers():
    x_t, x_next = torch.tensor([1., -2.]), torch.tensor([3., -1.])
    assert neural_stiffness_index(x_t, x_next).tolist() == [2., .5]
    nsi = neural_stiffness_index(x_t, x_next, torch.tensor([1., 2.]))
    assert nsi.tolist() == [2., .25]
    zero = torch.zeros(2)
    assert neural_stiffness_index(x_t, x_t + zero, zero).tolist() == [0., 0.]
    assert neural_stiffness_index(x_t, x_next, 0.).tolist() == [INF, INF]
    none = torch.zeros(0, 3)
    assert neural_stiffness_index(none, none).shape == (0, )
    with pytest.raises(ValueError, match='x_t and x_next'):
        neural_stiffness_index(torch.zeros(2, 3), torch.zeros(3))


@pytest.mark.parametrize('bad', [-INF, NAN])
def test_a_value_that_is_not_finite_gives_inf_in_its_sample_only(bad):
    finite = torch.ones(2, 3)
    broken = finite.clone()
    broken[1, 2] = bad
    for x_t, x_next in ((broken, finite), (finite, broken), (broken, broken)):
        assert neural_stiffness_index(x_t, x_next).tolist() == [0., INF]


def test_half_precision_neither_stalls_nor_overflows():
    ones = torch.ones(1, 64, 64, dtype=torch.bfloat16)
    norm = sample_norm(ones)
    assert norm.item() == 64 and norm.dtype == torch.float32
    for value in (300., 40000.):
        x_t = torch.full((1, 8), value, dtype=torch.float16)
        assert neural_stiffness_index(x_t, -x_t).item() == pytest.approx(2.)


def test_norm_ratio_table():
    a = torch.tensor([0., 1., 3., INF, 1., INF, NAN, 1., NAN])
    b = torch.tensor([0., 0., 2., 1., INF, INF, 1., NAN, NAN])
    expected = [0., INF, 1.5] + [INF] * 6
    assert norm_ratio(a, b).tolist() == expected


def test_si_is_the_largest_real_part_by_modulus():
    basis = torch.eye(3).double() + .3 * torch.randn(3, 3).double()
    for eigenvalues in ([-1., -1000., 2.], [0., 0., 0.]):
        jacobian = basis @ torch.diag(torch.tensor(
            eigenvalues).double()) @ torch.linalg.inv(basis)
        assert stiffness_index(jacobian).item() == pytest.approx(
            max(map(abs, eigenvalues)), rel=1e-9, abs=1e-9)
    rotation = torch.tensor([[-3., 50.], [-50., -3.]])  # damped
    assert stiffness_index(rotation.double()).item() == pytest.approx(3)


def test_sai_with_uneven_times_by_hand():
    states = torch.tensor([[0., 0.], [0., 0.], [3., 4.], [3., 1.]])
    times = [0., 1., 1.5, 3.5]
    assert stiffness_aware_index(states, times).tolist() == pytest.approx(
        [0., INF, 3 / 2 / 5])
    quotient = stiffness_aware_index(states, times, simplified=True)
    assert quotient.tolist() == [[0., 0.], [6., 8.], [0., -1.5]]


def test_sai_of_half_precision_and_of_equal_times():
    states = torch.tensor([[0.], [300.]], dtype=torch.float16)
    quotient = stiffness_aware_index(states, [0, 1e-3], simplified=True)
    torch.testing.assert_close(quotient, torch.tensor([[3e5]]))
    with pytest.raises(ValueError, match='^times: '):
        stiffness_aware_index(torch.ones(3, 2), [0., 1., 1.])
