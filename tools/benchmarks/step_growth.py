#!/usr/bin/env python
"""How the cost of a step size grows: depth, batch, image size, recording.

python tools/benchmarks/step_growth.py
python tools/benchmarks/step_growth.py --device cuda --depths 50 101 152 \
  --batches 1 8 32 --edges 224 512 800

Training time (forward and backward) of StepNet over the plain ResNet of the
same size, and of StepNet with a TrajectoryRecorder around every iteration
(what TNSHook does in the iterations that it measures). One of depth, batch
size and edge changes at a time; the others stay at the values of --at. All
three variants run in turn. CSV and figure as in step_cost.py.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import argparse
from pathlib import Path
from types import SimpleNamespace

from step_cost import (
    Variant,
    add_arguments,
    check_arguments,
    measure,
    print_rows,
    ratio,
    stem_of,
    write_csv,
)

from stepnet_mm.recording import TrajectoryRecorder
from stepnet_mm.stiffness import summarize_stiffness
from stepnet_mm.visualization import save_figure, style
from stepnet_mm.visualization.canvas import legend_below, new_figure

FIELDS = ('changes', 'depth', 'batch_size', 'edge', 'plain_s', 'stepnet',
          'stepnet_recorded')


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument(
        '--depths', type=int, nargs='*', default=[50, 101, 152],
        help='of the ResNet')
    parser.add_argument(
        '--batches', type=int, nargs='*', default=[1, 4, 8, 32],
        help='images')
    parser.add_argument(
        '--edges', type=int, nargs='*', default=[224, 512, 800], help='px')
    parser.add_argument('--at', type=int, nargs=3, default=[50, 4, 224],
                        metavar=('DEPTH', 'BATCH', 'EDGE'),
                        help='where the others stay while one grows')
    args = parser.parse_args()
    check_arguments(parser, args)
    return args


class Recorded(Variant):
    """A network whose every iteration is recorded and summed up."""

    def train(self):
        """A recorded forward and backward pass."""
        with TrajectoryRecorder(self.model) as recorder:
            super().train()
        summarize_stiffness(recorder.nsi, recorder.stage, recorder.blocks)


def sizes(args):
    """(what changes, depth, batch size, edge), each once."""
    depth, batch, edge = args.at
    for value in args.depths:
        yield 'depth', value, batch, edge
    for value in args.batches:
        yield 'batch_size', depth, value, edge
    for value in args.edges:
        yield 'edge', depth, batch, value


def measure_size(changes, depth, batch_size, edge, args) -> dict:
    own = SimpleNamespace(**{
        **vars(args), 'depth': depth, 'batch_size': batch_size, 'edge': edge,
        'detector': False})
    plain, step, recorded = [
        kind(name, 'eager', own) for kind, name in (
            (Variant, 'plain'), (Variant, 'stepnet'), (Recorded, 'stepnet'))]
    times = measure([plain, step, recorded], 'train', own)
    reference = sorted(times[plain])[len(times[plain]) // 2]
    return dict(
        changes=changes, depth=depth, batch_size=batch_size, edge=edge,
        plain_s=f'{reference:.4f}', stepnet=ratio(times[step], times[plain]),
        stepnet_recorded=ratio(times[recorded], times[plain]))


@style.styled
def plot(rows):
    """Ratios by what changes, one panel each."""
    groups = list(dict.fromkeys(row['changes'] for row in rows))
    figure = new_figure(2.9 * len(groups), 3.2)
    axes = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
    names = dict(depth='depth', batch_size='batch size', edge='edge, px')
    for axis, group in zip(axes, groups):
        draw_growth(axis, group, [r for r in rows if r['changes'] == group])
        axis.set_xlabel(names[group])
    axes[0].set_ylabel('training time / plain')
    legend_below(figure, axes[0].get_legend_handles_labels()[0])
    return figure


def draw_growth(axis, group, rows):
    """Two lines over the sizes of one kind."""
    sizes = [str(row[group]) for row in rows]
    for i, (key, label) in enumerate((('stepnet', 'StepNet'), (
            'stepnet_recorded', 'StepNet, recorded'))):
        axis.plot(sizes, [float(row[key]) for row in rows], label=label,
                  **{**style.mark(i), **style.look(i)})
    axis.axhline(1, color=style.theme().ink, linewidth=style.points(.8),
                 linestyle=':')


def main():
    args = parse_args()
    path = Path(args.out) / f'{stem_of("step_growth", args)}.csv'
    rows = []
    for size in sizes(args):
        rows.append(measure_size(*size, args))
        print_rows(FIELDS, rows[-1:])
        write_csv(path, FIELDS, rows)
    with style.use(args.size, args.theme):
        save_figure(plot(rows), path.with_suffix('.png'))
    print(path)


if __name__ == '__main__':
    main()
