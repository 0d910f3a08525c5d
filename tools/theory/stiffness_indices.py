#!/usr/bin/env python
"""SI and SAI (§2.1.2 of the paper) of systems that are known to be stiff.

Theorem 2: SAI ≈ SI sqrt(c + Q) where the Jacobian is symmetric with distinct
negative eigenvalues, and Q vanishes as SI grows. The first part shows it for a
linear system du/dt = J u + h. Q vanishes while h stays bounded; on the slow
manifold (u's fastest component at rest, h_1 = -λ_1 c_1) SAI does not grow with
SI. The second part follows Van der Pol's oscillator and Robertson's reaction,
whose Jacobians are NOT symmetric, so Theorem 2 says nothing of them.

python tools/theory/stiffness_indices.py
"""
import stepnet_mm.utils.interrupts  # Ctrl-C from here on

from collections.abc import Callable
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import torch
from scipy.integrate import solve_ivp
from scipy.stats import spearmanr
from torch.func import jacrev, vmap

from stepnet_mm.stiffness import stiffness_aware_index, stiffness_index
from stepnet_mm.utils.command_line import command_parser

#: Of an eigenvalue that is 0, relative to the largest one.
ROUNDING = 1e-9
#: h of the linear systems.
CASES = ('h fixed', 'h = 0', 'slow manifold: h₁ = -λ₁c₁')


class System(NamedTuple):
    """du/dt = field(*u), from ``start`` over ``span``."""
    name: str
    field: Callable
    start: tuple
    span: tuple


def robertson(a, b, c):
    slow, fast, back = .04 * a, 3e7 * b * b, 1e4 * b * c
    return back - slow, slow - back - fast, fast


def systems(mu):
    return (System(f'Van der Pol, μ = {mu:g}',
                   lambda x, v: (v, mu * (1 - x * x) * v - x),
                   (2., 0.), (0., 2. * mu)),
            System("Robertson's reaction", robertson, (1., 0., 0.), (0., 1e5)))


def follow(system, rtol=1e-8):
    """Solve a system; its indices at the solver's own steps."""
    solution = solve_ivp(
        lambda _, u: system.field(*u), system.span, system.start,
        method='Radau', rtol=rtol, atol=1e-4 * rtol)
    if not solution.success:
        raise RuntimeError(f'{system.name}: {solution.message}')
    return indices(system.field, torch.tensor(solution.y.T),
                   torch.tensor(solution.t))


def indices(field, states, times):
    """States (T, n) at times (T,) -> (T - 1,) each, of all but the last."""
    jacobian = vmap(jacrev(lambda u: torch.stack(field(*u))))(states[:-1])
    norm = torch.linalg.matrix_norm
    si = stiffness_index(jacobian)
    highest = torch.linalg.eigvals(jacobian).real.amax(1)
    return SimpleNamespace(
        times=times[:-1],
        si=si,  # 1 / time
        sai=stiffness_aware_index(states, times),  # 1 / time
        asymmetry=norm(jacobian - jacobian.mT) / norm(jacobian),
        growing=highest > ROUNDING * si)  # whether some Re λ > 0


def linear_ratios(sizes):
    """Symmetric systems with the eigenvalues -SI, -3, -2 and -1.

    u, the eigenvectors and h are random.

    Returns:
        tuple: SAI / SI as Δt tends to 0, (sizes, cases), and √c.
    """
    generator = np.random.default_rng(0)
    basis = np.linalg.qr(generator.normal(size=(4, 4)))[0]
    c, h = generator.normal(size=(2, 4))
    ratios = []
    for si in sizes:
        jacobian = basis * [-si, -3., -2., -1.] @ basis.T
        fields = np.array([h, 0 * h, [si * c[0], *h[1:]]])
        velocities = (jacobian @ basis @ c)[:, None] + basis @ fields.T
        ratios.append(np.linalg.norm(velocities, axis=0)
                      / np.linalg.norm(c) / si)
    return np.array(ratios), abs(c[0]) / np.linalg.norm(c)


def print_linear():
    sizes = 10.**np.arange(1, 7)
    ratios, root = linear_ratios(sizes)
    print(f'Theorem 2 on du/dt = J u + h, J symmetric; √c = {root:.6f}')
    print('SAI / SI for  SI' + ''.join(map('{:>28}'.format, CASES)))
    for si, row in zip(sizes, ratios):
        print(f'{si:16.0e}' + ''.join(map('{:28.6g}'.format, row)))


def print_nonlinear(name, found):
    ratio = found.sai / found.si
    worst, fastest = found.si.argmax(), found.sai.argmax()
    print(f'''
{name}: J is not symmetric, so Theorem 2 does not apply
  states                   {len(found.times)}
  |J - Jᵀ| / |J|, median   {found.asymmetry.median():.2f}
  some Re λ > 0            {found.growing.double().mean():.1%} of the states
  SI                       {found.si.min():.3g} to {found.si[worst]:.3g}, \
highest at t = {found.times[worst]:.4g}
  SAI                      {found.sai.min():.3g} to {found.sai[fastest]:.3g}, \
highest at t = {found.times[fastest]:.4g}
  SAI / SI                 {ratio.min():.2g} to {ratio.max():.2g}, \
median {ratio.median():.2g}
  Spearman's ρ of the two  {spearmanr(found.si, found.sai).statistic:.2f}''')


def main():
    command_parser(__doc__).parse_args()
    print_linear()
    for system in systems(1000.):
        print_nonlinear(system.name, follow(system))


if __name__ == '__main__':
    main()
