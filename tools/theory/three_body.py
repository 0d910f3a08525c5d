#!/usr/bin/env python
"""Close encounters in the planar three-body problem (§3.1 of the paper).

The paper says that of 1,000 simulations 91.4 % contain a close encounter, on
average in 4.2 % of their time intervals, "following" its reference [10]
(symplectic recurrent neural networks), and gives neither the distance that
counts as close nor the time span. So the shares are printed for several
distances, and the distances that give its 91.4 % and its 4.2 %.

Three equal masses, m = G = 1, from t = 0 to --time. They start as in [10],
which follows Hamiltonian neural networks: an equilateral triangle of radius
0.9 to 1.2 on a circular orbit, each component of each velocity changed by up
to 20 %.

python tools/theory/three_body.py --out three_body.png
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import time
from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import bisect

from stepnet_mm.utils.command_line import command_parser, output_file, positive
from stepnet_mm.visualization import save_figure, style
from stepnet_mm.visualization.style import legend_beside, new_figure

#: Points at which each step of the solver is evaluated.
SUBSTEPS = 4
#: Pair distances that count as close.
THRESHOLDS = (.01, .02, .05, .1, .2, .3, .5)
#: Of DOP853; a simulation with a larger relative error of its energy fails.
RTOL, ENERGY_TOLERANCE = 1e-12, 1e-6
PAPER = dict(simulations=.914, time=.042)


class Run(NamedTuple):
    """One simulation, at T times that are not evenly spaced."""
    times: np.ndarray  # (T,)
    nearest: np.ndarray  # (T,), the smallest distance of two bodies
    energy_error: float  # largest relative one; inf if the solver gave up


def parse_args():
    parser = command_parser(__doc__)
    parser.add_argument(
        '--simulations', type=positive, default=1000, help='how many')
    parser.add_argument('--time', type=float, default=10., help='of each')
    parser.add_argument('--seed', type=int, default=0, help='of the starts')
    parser.add_argument(
        '--out', type=output_file, default='three_body.png', help='picture')
    style.add_options(parser)
    return parser.parse_args()


def random_start(rng):
    """Positions and velocities, (3,) each, complex."""
    first = rng.uniform(-1, 1) + 1j * rng.uniform(-1, 1)
    radius = rng.uniform(.9, 1.2)
    turns = np.exp(2j * np.pi / 3 * np.arange(3))
    positions = radius * first / abs(first) * turns
    circular = 1j * positions * radius**-1.5 * 3**-.25
    change = 1 + .2 * rng.uniform(-1, 1, (2, 3))
    return positions, (
        circular.real * change[0] + 1j * circular.imag * change[1])


def to_gaps(vectors):
    """From each body to the next, (3,) -> (3,)."""
    return vectors[[1, 2, 0]] - vectors


def derivative(_, state):
    """State (6,): the gaps and how fast they change.

    Differences of positions would lose an encounter's digits, and numpy on
    three numbers is slower than Python.
    """
    *gaps, u, v, w = state.tolist()
    pulls = [gap / abs(gap)**3 for gap in gaps]
    total = sum(pulls)
    return np.array([u, v, w, *(total - 3 * pull for pull in pulls)])


def energy(states):
    """Around the centre of mass, (..., 6) -> (...)."""
    kinetic = (np.abs(states[..., 3:])**2).sum(-1) / 6
    return kinetic - (1 / np.abs(states[..., :3])).sum(-1)


def simulate(start, duration):
    """Integrate one start, positions and velocities (3,) each."""
    solution = solve_ivp(
        derivative, (0, duration),
        np.concatenate([to_gaps(vectors) for vectors in start]),
        method='DOP853', rtol=RTOL, atol=1e-3 * RTOL, dense_output=True)
    steps = np.arange(len(solution.t))
    times = np.interp(np.arange(0, steps[-1] + .5 / SUBSTEPS, 1 / SUBSTEPS),
                      steps, solution.t)
    states = solution.sol(times).T
    levels = energy(states)
    error = np.abs(levels / levels[0] - 1).max()
    return Run(times, np.abs(states[:, :3]).min(1),
               error if solution.success else np.inf)


def time_share(runs, threshold):
    """Mean share of the time with two bodies nearer than the threshold.

    Distances are interpolated.
    """
    found = []
    for run in runs:
        low, high = np.sort([run.nearest[:-1], run.nearest[1:]], axis=0)
        width = np.maximum(high - low, np.finfo(float).tiny)
        below = np.clip((threshold - low) / width, 0, 1)
        found.append(below @ np.diff(run.times) / run.times[-1])
    return np.mean(found)


def shares(runs, threshold):
    """Share of the simulations with an encounter, and of the time in one."""
    return (np.mean([run.nearest.min() < threshold for run in runs]),
            time_share(runs, threshold))


def threshold_for_time(runs, share):
    """The threshold below which two bodies are for that share of the time."""
    return bisect(lambda threshold: time_share(runs, threshold) - share,
                  0, max(run.nearest.max() for run in runs))


def print_table(runs):
    # The next number above, for an encounter is nearer than its threshold.
    by_share = np.nextafter(np.quantile(
        [run.nearest.min() for run in runs], PAPER['simulations'],
        method='inverted_cdf'), np.inf)
    rows = [*(('', threshold) for threshold in THRESHOLDS),
            ("the paper's share of simulations:", by_share),
            ("the paper's share of time:",
             threshold_for_time(runs, PAPER['time']))]
    print(f'{"closer than":>43}  simulations      time')
    for label, threshold in rows:
        simulations, time_in_one = shares(runs, threshold)
        print(f'{label:>34} {threshold:>8.4f}  {simulations:>11.2%}  '
              f'{time_in_one:>8.2%}')
    print(f'{"the paper:":>34} {"?":>8}  {PAPER["simulations"]:>11.2%}  '
          f'{PAPER["time"]:>8.2%}')


@style.styled
def draw(runs, args):
    """Shares over the threshold."""
    figure = new_figure(style.WIDTH, 4)
    axes = figure.subplots()
    smallest = [run.nearest.min() for run in runs]
    thresholds = np.geomspace(
        max(min(smallest), 1e-3), max(max(smallest), 1), 40)
    found = np.array([shares(runs, t) for t in thresholds])
    for i, label in enumerate(('simulations with one', 'time in one')):
        axes.plot(thresholds, 100 * found[:, i], label=label, **style.look(i))
    for i, (kind, share) in enumerate(PAPER.items()):
        axes.axhline(100 * share, color=style.color(i), zorder=0,
                     linewidth=style.points(.8),
                     label=f'the paper, {kind}: {100 * share:.1f} %')
    axes.set(xlabel='pair distance that counts as close', xscale='log',
             ylabel='share (%)', yscale='log', ylim=(.01, 150),
             title=f'{len(runs):,} simulations of three equal masses (G = m '
             f'= 1), t = 0 to {args.time:g}')
    legend_beside(axes)
    return figure


def main():
    args = parse_args()
    began = time.time()
    rng = np.random.default_rng(args.seed)
    runs = [simulate(random_start(rng), args.time)
            for _ in range(args.simulations)]
    good = [run for run in runs if run.energy_error <= ENERGY_TOLERANCE]
    errors = [run.energy_error for run in runs]
    print(f'{len(runs)} simulations to t = {args.time:g}, '
          f'{time.time() - began:.0f} s; relative energy error: median '
          f'{np.median(errors):.1e}, largest {max(errors):.1e}; '
          f'{len(runs) - len(good)} above {ENERGY_TOLERANCE:g}, left out '
          'below')
    print_table(good)
    with style.use(args.size, args.theme):
        save_figure(draw(good, args), args.out)
    print(f'picture: {args.out}')


if __name__ == '__main__':
    main()
