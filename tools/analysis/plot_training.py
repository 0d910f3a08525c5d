#!/usr/bin/env python
"""Print and draw the stiffness that TNSHook logged in a work dir.

python tools/analysis/plot_training.py work_dirs/faster_rcnn_r50_stepnet
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import argparse
from pathlib import Path

from stepnet_mm.analysis import read_stiffness_curve, read_stiffness_curves
from stepnet_mm.utils.command_line import check_output, output_file
from stepnet_mm.visualization import (
    curve_figure,
    save_figure,
    style,
)


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('work_dir', help='work dir of a training run')
    parser.add_argument(
        '--out', type=output_file, help='picture (default: WORK_DIR/tns.png)')
    parser.add_argument('--title', help='its heading')
    parser.add_argument(
        '--hook', help='name of the TNSHook, where the run had several')
    style.add_options(parser)
    return parser.parse_args()


def read_curve(work_dir, hook):
    """The curve of a hook; left out, of the one without a name of its own.

    Raises:
        ValueError: if there are several, all with names.
    """
    names = sorted(read_stiffness_curves(work_dir))
    if hook is None and 'stiffness' in names:
        hook = 'stiffness'
    if hook is None and len(names) > 1:
        raise ValueError(f'--hook: expected one of {names}, which all '
                         f'measured in {work_dir}, got none; name one')
    return read_stiffness_curve(work_dir, hook or (names or ['stiffness'])[0])


def print_table(curve):
    found = sorted({k for row in curve for k in row})
    # Earlier versions logged neither the median nor the quantile of TNS.
    keys = ['step', 'tns', *(k for k in found if k.startswith('tns_')),
            *(k for k in found if k.endswith('_mean'))]
    print('  '.join(f'{k:>15}' for k in keys))
    for row in curve:
        print('  '.join(f'{row.get(k, float("nan")):>15.4g}' for k in keys))


def main():
    args = parse_args()
    out = args.out or Path(args.work_dir) / 'tns.png'
    check_output('--out', out, Path(args.work_dir).glob('*/vis_data/*'))
    curve = read_curve(args.work_dir, args.hook)
    print_table(curve)
    with style.use(args.size, args.theme):
        save_figure(curve_figure(curve, args.title), out)
    print(f'TNS curve: {out}')


if __name__ == '__main__':
    main()
