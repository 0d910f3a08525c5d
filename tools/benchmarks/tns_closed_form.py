#!/usr/bin/env python
"""Time TNS in closed form against the same double integral on a grid.

Random NSI, lognormal. δ(M1, M2) is 0 beyond the largest a_s = b_s / mu_s - 1
and the largest b_s of all samples, so the grid covers [0, max a_s] x
[0, max b_s]. δ falls with both thresholds: in each cell it lies between its
values at the upper and at the lower corner, so the sums over both bracket the
integral, and the middles of the cells lie in the bracket too. Two grids are
timed: ``stiffness_survival`` at the middles, and a lean one that sorts each
sample once into the cells of M2 instead of asking every threshold.
OMP_NUM_THREADS sets the threads.

python tools/benchmarks/tns_closed_form.py
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import argparse
import statistics
import time

import torch

from stepnet_mm.stiffness import (
    stage_summary,
    stiffness_survival,
    total_neural_stiffness,
)


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--samples', type=int, default=10000,
                        help='of NSI, drawn')
    parser.add_argument('--stages', type=int, default=3,
                        help='of the network')
    parser.add_argument(
        '--blocks', type=int, default=17, help='measured blocks of a stage')
    parser.add_argument('--cells', type=int, default=200, help='along an axis')
    parser.add_argument('--spread', type=float, default=.5, help='of log NSI')
    parser.add_argument('--runs', type=int, default=5,
                        help='timed runs')
    parser.add_argument('--seed', type=int, default=0,
                        help='of the drawing')
    args = parser.parse_args()
    for name in ('samples', 'stages', 'blocks', 'cells', 'runs'):
        if getattr(args, name) < 1:
            parser.error(f'--{name}: expected at least 1, got '
                         f'{getattr(args, name)}')
    return args


def random_nsi(samples, stages, blocks, spread=.5, seed=0):
    """NSI (N, L) in float64 and stage (L,)."""
    generator = torch.Generator().manual_seed(seed)
    logs = spread * torch.randn(
        samples, stages * blocks, generator=generator, dtype=torch.float64)
    return logs.exp(), torch.arange(stages).repeat_interleave(blocks)


def extent(nsi, stage):
    """The largest a_s and the largest b_s of all samples."""
    _, mean, maximum, _ = stage_summary(nsi, stage)
    return (maximum / mean - 1).max().item(), maximum.max().item()


def edges(nsi, stage, cells):
    """Edges of the cells along M1 and M2, (cells + 1,) each."""
    steps = torch.arange(cells + 1, dtype=torch.float64) / cells
    width, height = extent(nsi, stage)
    return width * steps, height * steps


def middles(values):
    return (values[1:] + values[:-1]) / 2


def grid_tns(nsi, stage, m1, m2):
    """TNS by the middles of the cells with these edges."""
    survival = stiffness_survival(nsi, stage, middles(m1), middles(m2))
    return survival.sum().item() * area(m1, m2)


def lean_grid_tns(nsi, stage, m1, m2):
    """The same sum, by counting for each M1 how many M2 a sample reaches."""
    _, mean, maximum, _ = stage_summary(nsi, stage)
    reached = torch.searchsorted(middles(m2), maximum, right=True)
    ratio = maximum / mean
    total = sum(
        torch.where(ratio >= 1 + m, reached, 0).amax(1).sum().item()
        for m in middles(m1).tolist())
    return total / len(nsi) * area(m1, m2)


def area(m1, m2):
    """Of a cell."""
    return ((m1[1] - m1[0]) * (m2[1] - m2[0])).item()


def bracket(nsi, stage, m1, m2):
    """Lower and upper Riemann sum of TNS on cells with these edges."""
    survival = stiffness_survival(nsi, stage, m1, m2)
    return (survival[1:, 1:].sum().item() * area(m1, m2),
            survival[:-1, :-1].sum().item() * area(m1, m2))


def timed(function, runs):
    """The median time in s, and what the function returns."""
    times = []
    for _ in range(runs + 1):  # the first one warms caches up
        start = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:]), result


def main():
    args = parse_args()
    nsi, stage = random_nsi(args.samples, args.stages, args.blocks,
                            args.spread, args.seed)
    m1, m2 = edges(nsi, stage, args.cells)
    closed, tns = timed(
        lambda: total_neural_stiffness(nsi, stage).mean().item(), args.runs)
    low, high = bracket(nsi, stage, m1, m2)
    print(f'NSI {tuple(nsi.shape)}, {args.stages} stages; grid {args.cells} x '
          f'{args.cells} over M1 <= {m1[-1]:.4g}, M2 <= {m2[-1]:.4g}; torch '
          f'{torch.__version__}, {torch.get_num_threads()} threads; median of '
          f'{args.runs} runs\n'
          f'{"":<25} {"TNS":>10} {"off by":>11} {"time":>12} '
          f'{"times as long":>13}')
    print(f'{"closed form":<25} {tns:>10.6f} {"":>11} '
          f'{1e3 * closed:>9.2f} ms')
    for name, grid in (('grid, stiffness_survival', grid_tns),
                       ('grid, lean', lean_grid_tns)):
        duration, value = timed(
            lambda grid=grid: grid(nsi, stage, m1, m2), args.runs)
        print(f'{name:<25} {value:>10.6f} {value - tns:>+11.6f} '
              f'{1e3 * duration:>9.2f} ms {duration / closed:>13.1f}')
    print(f'Riemann sums: {low:.6f} <= TNS <= {high:.6f}; so the grid is off '
          f'by at most {high - low:.6f}\nclosed form within: '
          f'{"yes" if low <= tns <= high else "NO"}')


if __name__ == '__main__':
    main()
