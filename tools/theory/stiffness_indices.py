#!/usr/bin/env python
"""SI and SAI (§2.1.2 of the paper) of systems that are known to be stiff.

Theorem 2 ties them, SAI ≈ SI sqrt(c + Q), where the Jacobian is symmetric
with distinct negative eigenvalues, and says that Q vanishes as SI grows. The
first part draws just that, for a linear system du/dt = J u + h; Q vanishes
as long as h stays bounded, but on the slow manifold (u's fastest component
at rest, h_1 = -λ_1 c_1) SAI does not grow with SI. The second part follows
Van der Pol's oscillator and Robertson's reaction, whose Jacobians are NOT
symmetric: Theorem 2 says nothing of them; what comes out is printed.

python tools/theory/stiffness_indices.py --out stiffness_indices.png
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import argparse
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from scipy.integrate import solve_ivp
from scipy.stats import spearmanr
from torch.func import jacrev, vmap

from stepnet_mm.stiffness import stiffness_aware_index, stiffness_index
from stepnet_mm.visualization import save_figure, style
from stepnet_mm.visualization.style import legend_beside, new_figure

#: Of an eigenvalue that is 0, relative to the largest one.
ROUNDING = 1e-9
CASES = dict(
    forced='h fixed', free='h = 0', slow='slow manifold: h₁ = -λ₁c₁')


class System(NamedTuple):
    """du/dt = field(*u), from ``start`` over ``span``."""
    name: str
    field: Callable
    start: tuple
    span: tuple
    log_time: bool


class Indices(NamedTuple):
    """What is found at the T - 1 first states of a solution."""
    times: torch.Tensor  # (T - 1,)
    si: torch.Tensor  # (T - 1,), 1 / time
    sai: torch.Tensor  # (T - 1,), 1 / time
    asymmetry: torch.Tensor  # (T - 1,), |J - J^T| / |J|, Frobenius
    growing: torch.Tensor  # (T - 1,), whether some Re λ > 0


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        '--mu', type=float, default=1000., help="Van der Pol's")
    parser.add_argument('--rtol', type=float, default=1e-8, help='of Radau')
    parser.add_argument('--seed', type=int, default=0, help='linear system')
    parser.add_argument(
        '--out', default='stiffness_indices.png', help='picture')
    style.add_options(parser)
    args = parser.parse_args()
    if not (args.mu > 0 and args.rtol > 0):
        parser.error('--mu and --rtol: expected more than 0, got '
                     f'{args.mu} and {args.rtol}')
    return args


def van_der_pol(x, v, mu):
    return v, mu * (1 - x * x) * v - x


def robertson(a, b, c):
    slow, fast, back = .04 * a, 3e7 * b * b, 1e4 * b * c
    return back - slow, slow - back - fast, fast


def systems(mu):
    return [
        System(f'Van der Pol, μ = {mu:g}', partial(van_der_pol, mu=mu),
               (2., 0.), (0., 2. * mu), False),
        System("Robertson's reaction", robertson, (1., 0., 0.), (0., 1e5),
               True)
    ]


def jacobians(field, states):
    """(T, n) -> (T, n, n), exact."""
    return vmap(jacrev(lambda u: torch.stack(field(*u))))(states)


def follow(system, rtol):
    """Solve a system; its indices at the solver's own steps.

    Raises:
        RuntimeError: if SciPy does not get to the end.
    """
    solution = solve_ivp(
        lambda _, u: system.field(*u), system.span, system.start,
        method='Radau', rtol=rtol, atol=1e-4 * rtol)
    if not solution.success:
        raise RuntimeError(f'{system.name}: {solution.message}')
    states, times = torch.tensor(solution.y.T), torch.tensor(solution.t)
    return indices(system.field, states, times)


def indices(field, states, times):
    """States (T, n) at times (T,) -> Indices."""
    matrix = jacobians(field, states[:-1])
    norm = torch.linalg.matrix_norm
    si = stiffness_index(matrix)
    highest = torch.linalg.eigvals(matrix).real.amax(1)
    return Indices(times[:-1], si, stiffness_aware_index(states, times),
                   norm(matrix - matrix.mT) / norm(matrix),
                   highest > ROUNDING * si)


def linear_case(si, case, seed):
    """SAI (its limit as Δt tends to 0) and √c of a symmetric system.

    Its other eigenvalues are -3, -2 and -1; u and the eigenvectors are drawn.
    """
    generator = np.random.default_rng(seed)
    basis = np.linalg.qr(generator.normal(size=(4, 4)))[0]
    c, a = generator.normal(size=(2, 4))
    eigenvalues = np.array([-si, -3., -2., -1.])
    if case == 'free':
        a[:] = 0
    elif case == 'slow':
        a[0] = si * c[0]
    jacobian = basis * eigenvalues @ basis.T
    velocity = jacobian @ (basis @ c) + basis @ a
    length = np.linalg.norm(c)
    return np.linalg.norm(velocity) / length, abs(c[0]) / length


def linear_ratios(sizes, seed):
    """case -> SAI / SI at every SI, and √c."""
    found = {
        case: np.array([linear_case(si, case, seed)[0] / si for si in sizes])
        for case in CASES
    }
    return found, linear_case(1., 'free', seed)[1]


def print_linear(seed):
    sizes = 10.**np.arange(1, 7)
    found, root = linear_ratios(sizes, seed)
    print(f'Theorem 2 on du/dt = J u + h, J symmetric; √c = {root:.6f}')
    print('     SI  SAI/SI: ' + ''.join(
        f'{label:>30}' for label in CASES.values()))
    for i, si in enumerate(sizes):
        print(f'{si:>7.0e}' + ' ' * 10 +
              ''.join(f'{values[i]:>30.6g}' for values in found.values()))


def print_nonlinear(name, found):
    ratio = found.sai / found.si
    worst, fastest = found.si.argmax(), found.sai.argmax()
    rows = [
        ('states', f'{len(found.times)}'),
        ('|J - Jᵀ| / |J|, median', f'{found.asymmetry.median():.2f}'),
        ('some Re λ > 0',
         f'{found.growing.double().mean():.1%} of the states'),
        ('SI', f'{found.si.min():.3g} to {found.si[worst]:.3g}, highest at '
         f't = {found.times[worst]:.4g}'),
        ('SAI', f'{found.sai.min():.3g} to {found.sai[fastest]:.3g}, highest '
         f'at t = {found.times[fastest]:.4g}'),
        ('SAI / SI', f'{ratio.min():.2g} to {ratio.max():.2g}, median '
         f'{ratio.median():.2g}'),
        ("Spearman's ρ of the two",
         f'{spearmanr(found.si, found.sai).statistic:.2f}'),
    ]
    print(f"\n{name}: J is not symmetric, so Theorem 2 does not apply")
    for label, text in rows:
        print(f'  {label:<24} {text}')


@style.styled
def draw(followed, seed):
    figure = new_figure(style.WIDTH, 10)
    axes = figure.subplots(4, 1)
    draw_linear(*axes[:2], seed)
    for axis, (system, found) in zip(axes[2:], followed):
        draw_nonlinear(axis, system, found)
    for axis in axes:
        legend_beside(axis)
    return figure


def draw_linear(upper, lower, seed):
    sizes = np.geomspace(10, 1e6, 60)
    found, root = linear_ratios(sizes, seed)
    for i, (case, values) in enumerate(found.items()):
        upper.semilogx(sizes, values, label=CASES[case], **style.look(i))
        if case != 'slow':
            lower.loglog(sizes, abs(values - root), label=CASES[case],
                         **style.look(i))
    upper.axhline(root, color=style.theme().muted, label='√c', zorder=0,
                 linewidth=style.points(1))
    upper.set(
        xlabel='SI (1 / time)', ylabel='SAI / SI', ylim=(0, None),
        title='Theorem 2, symmetric linear system')
    lower.set(
        xlabel='SI (1 / time)', ylabel='|SAI / SI - √c|',
        title='how fast SAI / SI comes to √c')


def draw_nonlinear(axes, system, found):
    show = axes.loglog if system.log_time else axes.semilogy
    moving = slice(1, None) if system.log_time else slice(None)
    for i, key in enumerate(('si', 'sai')):
        show(found.times[moving], getattr(found, key)[moving],
             label=key.upper(), **style.look(i))
    axes.set(
        xlabel='time', ylabel='SI, SAI (1 / time)',
        title=f'{system.name} (no theorem: J not symmetric)')


def main():
    args = parse_args()
    print_linear(args.seed)
    followed = [(system, follow(system, args.rtol))
                for system in systems(args.mu)]
    for system, found in followed:
        print_nonlinear(system.name, found)
    with style.use(args.size, args.theme):
        save_figure(draw(followed, args.seed), args.out)
    print(f'\npicture: {args.out}')


if __name__ == '__main__':
    main()
