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


def test_si_takes_the_real_part_of_an_oscillation():
    frequency = 50.
    for decay in (3., 0.):  # damped, and a pure rotation
        jacobian = torch.tensor([[-decay, frequency], [-frequency, -decay]])
        assert stiffness_index(jacobian.double()).item() == pytest.approx(
            decay, abs=1e-12)


def test_si_keeps_leading_axes():
    jacobian = torch.diag_embed(torch.arange(-12., 0.).reshape(2, 3, 2))
    expected = [[12., 10., 8.], [6., 4., 2.]]
    assert stiffness_index(jacobian).tolist() == expected


def test_si_of_a_complex_jacobian():
    jacobian = torch.diag(torch.tensor([-2 + 7j, 1 - 9j]))
    assert stiffness_index(jacobian).item() == pytest.approx(2)


@pytest.mark.parametrize('shape', [(), (2, 3)])
def test_si_wants_square_matrices(shape):
    with pytest.raises(ValueError, match='jacobian: '):
        stiffness_index(torch.zeros(shape))


def decay_error(c, dt):
    """Relative gap between SAI along u' = -c u and its limit c."""
    times = torch.arange(5).double() * dt
    start = torch.tensor([1., -2., 3.], dtype=torch.float64)
    states = torch.exp(-c * times)[:, None] * start
    sai = stiffness_aware_index(states, times)
    expected = -torch.expm1(torch.tensor(-c * dt, dtype=torch.float64)) / dt
    torch.testing.assert_close(sai, expected.expand(4), rtol=1e-9, atol=0)
    return abs(sai[0].item() - c) / c


@pytest.mark.parametrize('c', [.5, 40.])
def test_sai_of_exponential_decay_tends_to_its_rate(c):
    coarse, fine = decay_error(c, .02 / c), decay_error(c, .01 / c)
    assert fine < .006
    assert math.log2(coarse / fine) == pytest.approx(1, abs=.01)


def test_sai_with_uneven_times_equals_a_loop():
    torch.manual_seed(0)
    states = torch.randn(4, 2, 3).double()
    times = [0., .1, .5, 2.]
    expected = [((states[i + 1] - states[i]) /
                 (times[i + 1] - times[i])).norm() / states[i].norm()
                for i in range(3)]
    sai = stiffness_aware_index(states, torch.tensor(times).double())
    torch.testing.assert_close(sai, torch.stack(expected))


def test_simplified_form_is_the_quotient_itself():
    states = torch.tensor([[1., 2.], [3., 1.], [3., 5.]])
    times = torch.tensor([0., .5, 2.5])
    quotient = stiffness_aware_index(states, times, simplified=True)
    assert quotient.tolist() == [[4., -2.], [0., 2.]]


def test_sai_of_a_state_at_rest_and_of_a_start_from_zero():
    states = torch.tensor([[0., 0.], [0., 0.], [1., 0.]])
    sai = stiffness_aware_index(states, [0., 1., 2.])
    assert sai.tolist() == [0., math.inf]


@pytest.mark.parametrize('bad', [math.inf, math.nan])
def test_sai_is_never_nan(bad):
    states = torch.tensor([[1., 1.], [bad, 1.], [1., 1.]])
    sai = stiffness_aware_index(states, [0., 1., 2.])
    assert sai.tolist() == [math.inf, math.inf]


@pytest.mark.parametrize('states, times', [
    (torch.zeros(3, 2), torch.arange(2.)),
    (torch.zeros(3, 2), torch.zeros(3, 1)),
    (torch.zeros(1, 2), torch.zeros(1)),
])
def test_wrong_shapes_are_named(states, times):
    with pytest.raises(ValueError, match='states, times: '):
        stiffness_aware_index(states, times)


@pytest.mark.parametrize('times', [[0., 1., 1.], [0., math.nan, 1.]])
def test_times_must_increase(times):
    with pytest.raises(ValueError, match='times: '):
        stiffness_aware_index(torch.ones(3, 2), times)


def test_sai_widens_states_of_half_precision():
    states = torch.tensor([[0.], [300.]], dtype=torch.float16)
    quotient = stiffness_aware_index(states, [0, 1e-3], simplified=True)
    assert quotient.dtype == torch.float32
    torch.testing.assert_close(quotient, torch.tensor([[3e5]]))


def test_sai_keeps_times_apart_that_the_states_dtype_would_not():
    states = torch.ones(1000, 2, dtype=torch.bfloat16)
    assert not stiffness_aware_index(states, torch.arange(1000.)).any()
