#!/usr/bin/env python
"""SI and SAI (§2.1.2 of the paper) of systems that are known to be stiff.

Theorem 2: SAI ≈ SI sqrt(c + Q) where the Jacobian is symmetric with distinct
negative eigenvalues, and Q vanishes as SI grows. The first part draws it for a
linear system du/dt = J u + h. Q vanishes while h stays bounded; on the slow
manifold (u's fastest component at rest, h_1 = -λ_1 c_1) SAI does not grow with
SI. The second part follows Van der Pol's oscillator and Robertson's reaction,
whose Jacobians are NOT symmetric, so Theorem 2 says nothing of them.

python tools/theory/stiffness_indices.py --out stiffness_indices.png
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from scipy.integrate import solve_ivp
from scipy.stats import spearmanr
from torch.func import jacrev, vmap

from stepnet_mm.stiffness import stiffness_aware_index, stiffness_index
from stepnet_mm.utils.command_line import command_parser, output_file
from stepnet_mm.visualization import save_figure, style
from stepnet_mm.visualization.style import legend_beside, new_figure

#: Of an eigenvalue that is 0, relative to the largest one.
ROUNDING = 1e-9
#: Of Van der Pol's oscillator; of Radau.
MU, RTOL = 1000., 1e-8
#: h of the linear systems.
CASES = dict(
    forced='h fixed', free='h = 0', slow='slow manifold: h₁ = -λ₁c₁')


class System(NamedTuple):
    """du/dt = field(*u), from ``start`` over ``span``."""
    name: str
    field: Callable
    start: tuple
    span: tuple
    scale: str  # of a picture's time


class Indices(NamedTuple):
    """What is found at the T - 1 first states of a solution, (T - 1,)."""
    times: torch.Tensor
    si: torch.Tensor  # 1 / time
    sai: torch.Tensor  # 1 / time
    asymmetry: torch.Tensor  # |J - J^T| / |J|, Frobenius
    growing: torch.Tensor  # whether some Re λ > 0


def parse_args():
    parser = command_parser(__doc__)
    parser.add_argument(
        '--out', type=output_file, default='stiffness_indices.png',
        help='picture')
    style.add_options(parser)
    return parser.parse_args()


def robertson(a, b, c):
    slow, fast, back = .04 * a, 3e7 * b * b, 1e4 * b * c
    return back - slow, slow - back - fast, fast


def systems(mu):
    return [
        System(f'Van der Pol, μ = {mu:g}',
               lambda x, v: (v, mu * (1 - x * x) * v - x),
               (2., 0.), (0., 2. * mu), 'linear'),
        System("Robertson's reaction", robertson, (1., 0., 0.), (0., 1e5),
               'log')
    ]


def follow(system, rtol=RTOL):
    """Solve a system; its indices at the solver's own steps."""
    solution = solve_ivp(
        lambda _, u: system.field(*u), system.span, system.start,
        method='Radau', rtol=rtol, atol=1e-4 * rtol)
    if not solution.success:
        raise RuntimeError(f'{system.name}: {solution.message}')
    return indices(system.field, torch.tensor(solution.y.T),
                   torch.tensor(solution.t))


def jacobians(field, states):
    """(T, n) -> (T, n, n), exact."""
    return vmap(jacrev(lambda u: torch.stack(field(*u))))(states)


def indices(field, states, times):
    """States (T, n) at times (T,) -> Indices."""
    matrix = jacobians(field, states[:-1])
    norm = torch.linalg.matrix_norm
    si = stiffness_index(matrix)
    highest = torch.linalg.eigvals(matrix).real.amax(1)
    return Indices(times[:-1], si, stiffness_aware_index(states, times),
                   norm(matrix - matrix.mT) / norm(matrix),
                   highest > ROUNDING * si)


def linear_ratios(sizes):
    """Symmetric systems with the eigenvalues -SI, -3, -2 and -1.

    u, the eigenvectors and h are random.

    Returns:
        tuple: case -> SAI / SI at each SI of ``sizes``, as Δt tends to 0,
        and √c.
    """
    generator = np.random.default_rng(0)
    basis = np.linalg.qr(generator.normal(size=(4, 4)))[0]
    c, h = generator.normal(size=(2, 4))
    length = np.linalg.norm(c)

    def ratio(case, si):
        first = dict(forced=h[0], free=0, slow=si * c[0])[case]
        field = np.array([first, *(h[1:] if case != 'free' else [0] * 3)])
        jacobian = basis * [-si, -3., -2., -1.] @ basis.T
        velocity = jacobian @ (basis @ c) + basis @ field
        return np.linalg.norm(velocity) / length / si

    return ({case: np.array([ratio(case, si) for si in sizes])
             for case in CASES}, abs(c[0]) / length)


def print_linear():
    sizes = 10.**np.arange(1, 7)
    found, root = linear_ratios(sizes)
    print(f'Theorem 2 on du/dt = J u + h, J symmetric; √c = {root:.6f}')
    print('     SI  SAI/SI: ' + ''.join(
        f'{label:>30}' for label in CASES.values()))
    for si, *row in zip(sizes, *found.values()):
        print(f'{si:>7.0e}' + ' ' * 10 + ''.join(f'{r:>30.6g}' for r in row))


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


@style.styled
def draw(followed):
    figure = new_figure(style.WIDTH, 10)
    upper, lower, *others = figure.subplots(4, 1)
    draw_linear(upper, lower)
    for axes, (system, one) in zip(others, followed):
        for i, key in enumerate(('si', 'sai')):
            axes.plot(one.times[1:], getattr(one, key)[1:],
                      label=key.upper(), **style.look(i))
        axes.set(xlabel='time', ylabel='SI, SAI (1 / time)', yscale='log',
                 xscale=system.scale,
                 title=f'{system.name} (no theorem: J not symmetric)')
    for axes in figure.axes:
        legend_beside(axes)
    return figure


def draw_linear(upper, lower):
    sizes = np.geomspace(10, 1e6, 60)
    found, root = linear_ratios(sizes)
    for i, (case, label) in enumerate(CASES.items()):
        upper.plot(sizes, found[case], label=label, **style.look(i))
        if case != 'slow':
            lower.plot(sizes, abs(found[case] - root), label=label,
                       **style.look(i))
    upper.axhline(root, color=style.theme().muted, label='√c', zorder=0,
                  linewidth=style.points(1))
    upper.set(xlabel='SI (1 / time)', ylabel='SAI / SI', ylim=(0, None),
              xscale='log', title='Theorem 2, symmetric linear system')
    lower.set(xlabel='SI (1 / time)', ylabel='|SAI / SI - √c|', xscale='log',
              yscale='log', title='how fast SAI / SI comes to √c')


def main():
    args = parse_args()
    print_linear()
    followed = [(system, follow(system)) for system in systems(MU)]
    for system, found in followed:
        print_nonlinear(system.name, found)
    with style.use(args.size, args.theme):
        save_figure(draw(followed), args.out)
    print(f'\npicture: {args.out}')


if __name__ == '__main__':
    main()
