#!/usr/bin/env python
"""Print and draw the stiffness that TNSHook logged in a work dir.

python tools/analysis/plot_training.py work_dirs/faster_rcnn_r50_stepnet
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import argparse
from pathlib import Path

from stepnet_mm.utils.command_line import output_file
from stepnet_mm.visualization import (
    curve_figure,
    read_stiffness_curve,
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
    style.add_options(parser)
    return parser.parse_args()


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
    curve = read_stiffness_curve(args.work_dir)
    print_table(curve)
    out = args.out or Path(args.work_dir) / 'tns.png'
    with style.use(args.size, args.theme):
        save_figure(curve_figure(curve, args.title), out)
    print(f'TNS curve: {out}')


if __name__ == '__main__':
    main()
