"""Theorems 1 and 2 of the paper, as they hold and as they are printed.

Theorem 1: k1 and k2 bound the norms of the states, a and b the step sizes.
Theorem 2: u = sum c_i v_i and du/dt = J u + h with h = sum a_i v_i, where
J v_i = λ_i v_i, |λ_1| = SI; the proof's g has g'(0) = h. c = c_1² / |u|².
"""
import math
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, float64

from stepnet_mm.stiffness import (
    neural_stiffness_index,
    stiffness_aware_index,
    stiffness_index,
    total_neural_stiffness,
)

# Theorem 1


def stage_nsi(blocks, k1, k2, a, b, samples=20):
    """NSI (N, blocks) of random states, one of whose steps turns back."""
    directions = torch.randn(blocks + 1, samples, 4, dtype=float64)
    norms = torch.empty(blocks + 1, samples, 1, dtype=float64).uniform_(
        math.log(k1), math.log(k2)).exp()
    states = norms * torch.nn.functional.normalize(directions, dim=2)
    turn = blocks // 2
    states[turn + 1] = -states[turn] * norms[turn + 1] / norms[turn]
    steps = torch.empty(blocks, samples, dtype=float64).uniform_(a, b)
    return torch.stack([
        neural_stiffness_index(states[t], states[t + 1], steps[t])
        for t in range(blocks)
    ], 1)


def eq_13(k1, k2, a):
    """The upper bound of NSI."""
    return (1 + k2 / k1) / a


def corrected_bound(stage, k1, k2, a):
    return (stage.bincount().max().item() - 1) * eq_13(k1, k2, a)


def eq_21(k1, k2, a, b):
    """The printed M̃; its square is the printed bound of TNS."""
    return max(b * k2 * (k1 + k2) / (a * k1 * abs(k1 - k2)) - 1,
               eq_13(k1, k2, a))


@pytest.mark.parametrize('k1, k2, a, b', [
    (1e-3, .1, .5, 5.), (2., 2., 1., 1.), (1., 9., .01, .1)])
def test_eq_13_and_the_corrected_bound(k1, k2, a, b):
    """So every TNS of bounded trajectories is finite."""
    sizes = torch.tensor([1, 4, 12])
    stage = torch.arange(3).repeat_interleave(sizes)
    nsi = torch.cat([stage_nsi(size, k1, k2, a, b)
                     for size in sizes.tolist()], 1)
    assert (nsi <= eq_13(k1, k2, a) * (1 + 1e-9)).all()
    assert (total_neural_stiffness(nsi, stage)
            <= corrected_bound(stage, k1, k2, a) * (1 + 1e-9) + 1e-9).all()


def still_but_one_jump(blocks, factor, step=1.):
    """NSI (1, blocks): norm 1 all along, at last a jump to -factor · x."""
    states = torch.ones(blocks + 1, 1, dtype=float64)
    states[-1] = -factor
    return neural_stiffness_index(states[:-1], states[1:], step)[None]


@pytest.mark.parametrize('blocks, factor, step', [
    (2, 1., 1.), (3, 2.5, .1), (17, 30., 3.), (100, 2.5, 1.)])
def test_one_jump_reaches_the_corrected_bound(blocks, factor, step):
    stage = torch.zeros(blocks, dtype=torch.long)
    tns = total_neural_stiffness(
        still_but_one_jump(blocks, factor, step), stage).item()
    assert tns == pytest.approx(corrected_bound(stage, 1., factor, step))


def test_printed_bound_does_not_hold():
    """From eight blocks on; its Eq. 14 is no lower bound of NSI."""
    factor = 1 + math.sqrt(2)
    printed = eq_21(1., factor, 1., 1.)**2
    assert printed == pytest.approx(12 + 8 * math.sqrt(2))
    tns = {
        blocks: total_neural_stiffness(
            still_but_one_jump(blocks, factor), [1] * blocks).item()
        for blocks in (7, 8, 17)}
    assert tns[17] == pytest.approx(16 * (2 + math.sqrt(2)))
    assert tns[7] < printed < tns[8]
    eq_14 = (factor - 1) / factor
    assert still_but_one_jump(5, factor)[0, 0] == 0 < eq_14


# Theorem 2


class LinearSystem(NamedTuple):
    eigenvalues: Tensor  # (n,), λ, by falling modulus
    basis: Tensor  # (n, n), columns v_i, orthonormal
    c: Tensor  # (n,), of u
    a: Tensor  # (n,), of h

    @property
    def jacobian(self):
        return self.basis @ torch.diag(self.eigenvalues) @ self.basis.T

    def states(self, times):
        """Exact solution, (T, n)."""
        decay = torch.expm1(times[:, None] * self.eigenvalues)
        modes = self.c + (self.c + self.a / self.eigenvalues) * decay
        return modes @ self.basis.T

    def sai(self, dt):
        times = torch.tensor([0., dt], dtype=float64)
        return stiffness_aware_index(self.states(times), times).item()

    def limit(self):
        """SAI as Δt tends to 0, from the right-hand side."""
        u, h = self.basis @ self.c, self.basis @ self.a
        return ((self.jacobian @ u + h).norm() / u.norm()).item()


def linear_system(seed, si=50., n=5, forced=True):
    """A symmetric system with distinct negative eigenvalues, |λ_1| = SI."""
    torch.manual_seed(seed)
    slow = -torch.arange(n - 1, 0., -1, dtype=float64)
    slow -= torch.rand(n - 1) / 2
    basis = torch.linalg.qr(torch.randn(n, n, dtype=float64)).Q
    c, a = torch.randn(2, n, dtype=float64)
    return LinearSystem(
        torch.cat([slow.new_tensor([-si]), slow]), basis, c, a * forced)


def share(system):
    """c of Theorem 2."""
    return (system.c[0]**2 / system.c.square().sum()).item()


def eq_24(system, cross_term):
    """SI² (c + Q), the square of Theorem 2's right-hand side."""
    eigenvalues, c, a = system.eigenvalues, system.c, system.a
    si, total = eigenvalues.abs().max(), c.square().sum()
    q = ((c[1:] * eigenvalues[1:]).square().sum() +
         (cross_term + a.square()).sum()) / (si**2 * total)
    return (si**2 * (share(system) + q)).item()


seeds = pytest.mark.parametrize('seed', range(2))


@seeds
@pytest.mark.parametrize('forced', [True, False])  # False: U of the proof
def test_theorem_2_is_exact_in_the_limit(seed, forced):
    system = linear_system(seed, forced=forced)
    si = stiffness_index(system.jacobian).item()
    assert si == pytest.approx(50)
    printed_term = 2 * system.a * system.eigenvalues
    sai = math.sqrt(eq_24(system, printed_term * system.c))
    assert system.limit() == pytest.approx(sai, rel=1e-9)
    assert system.sai(1e-7) == pytest.approx(sai, rel=1e-4)
    if forced:
        assert abs(eq_24(system, printed_term) / sai**2 - 1) > .005
    else:
        weights = system.c.square() / system.c.square().sum()
        assert (weights * system.eigenvalues).sum() < 0, 'no length'


@seeds
@pytest.mark.parametrize('forced, power', [(True, 1), (False, 2)])
def test_sai_over_si_tends_to_sqrt_c(seed, forced, power):
    """As 1 / SI, without forcing as 1 / SI²."""
    gaps = []
    for si in (1e3, 1e4):
        system = linear_system(seed, si, forced=forced)
        gaps.append(system.limit() / si - share(system)**.5)
    assert gaps[0] / gaps[1] == pytest.approx(10**power, rel=.1)


def test_on_the_slow_manifold_sai_does_not_grow_with_si():
    """Q tends to 0 only while h is bounded: here h_1 = -λ_1 c_1."""
    for si in (1e2, 1e6):
        system = linear_system(0, si)
        system.a[0] = si * system.c[0]
        others = (system.c * system.eigenvalues + system.a)[1:].norm()
        expected = (others / system.c.norm()).item()
        assert system.limit() == pytest.approx(expected, rel=1e-6)
