#!/usr/bin/env python
"""Rank correlation between TNS and performance over many runs (Fig. 7).

python tools/analysis/correlate.py work_dirs/methods/* --figure fig7.png

Of each work dir: TNS is that of its newest stiffness record (*.jsonl) of one
definition, the metric that of mmengine's scalars.json. Where no work dir has a
record, it is what TNSMetric logged beside the metric. Or --csv FILE: a line a
run, with the columns name, tns, metric.

TNS of a run is the mean over samples (Eq. 5), as in the paper; with
--statistic tns_median or tns_q95 it is their median or 95 % quantile, which
few extreme samples do not move. A CSV file then needs that column.

Prints Kendall's tau-b and Spearman's rho with two-sided p-values and
percentile bootstrap intervals over runs. Runs named <method>_seedN are no
independent draws, so the correlation of the methods' means is printed too.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import argparse
import json
from pathlib import Path

from stepnet_mm.analysis import (
    STATISTICS,
    check_runs,
    correlate,
    group_means,
    read_run,
    read_runs_table,
)
from stepnet_mm.stiffness import DEFINITIONS
from stepnet_mm.utils.command_line import check_output, output_file
from stepnet_mm.utils.files import written_whole
from stepnet_mm.visualization import plot_correlation, save_figure, style

#: Fewer runs than this give rough p-values and intervals.
FEW = 10
#: What the figure calls each statistic of TNS over samples.
LABELS = dict(tns='TNS (Eq. 5)', tns_median='median TNS',
              tns_q95='95 % quantile of TNS')


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('work_dirs', nargs='*', type=Path,
                        help='of the runs')
    parser.add_argument('--csv', type=Path, help='table in place of work dirs')
    parser.add_argument(
        '--metric', default='accuracy/top1', help='its key in scalars.json')
    parser.add_argument(
        '--best',
        action='store_true',
        help='the highest value of the metric in place of the last one')
    parser.add_argument(
        '--statistic',
        choices=list(LABELS),
        default='tns',
        help='of TNS over samples; default: tns, the mean')
    parser.add_argument(
        '--record',
        default='*.jsonl',
        help='file name of the records; the newest that fits is taken')
    parser.add_argument(
        '--definition', choices=DEFINITIONS,
        help='of NSI, of the records (default: residual where a work dir has '
        'it)')
    parser.add_argument(
        '--resamples', type=int, default=2000, help='of the bootstrap')
    parser.add_argument('--seed', type=int, default=0, help='of the bootstrap')
    parser.add_argument(
        '--confidence', type=float, default=.95, help='of the intervals')
    parser.add_argument(
        '--json', type=output_file, help='file for the numbers')
    parser.add_argument(
        '--figure', type=output_file, help='picture to write')
    style.add_options(parser)
    return parser.parse_args()


def print_runs(runs: list, metric: str, statistic: str) -> None:
    width = max(len(run['name']) for run in runs)
    print(f'{"run":<{width}}  {statistic:>10}  {metric:>15}  TNS from')
    for run in sorted(runs, key=lambda run: -run['tns']):
        print(f'{run["name"]:<{width}}  {run["tns"]:10.5g}  '
              f'{run["metric"]:15.5g}  {run["source"]}')
    print(f'Definition of NSI: {runs[0]["definition"] or "not known"}')


def print_result(title: str, count: int, found: dict, args) -> None:
    print(f'\n{title} (n = {count})')
    for name, row in found.items():
        print(f'{name:>9}: {row["statistic"]:+.3f}  p {row["p"]:.3g}  '
              f'{args.confidence:.0%} interval [{row["low"]:+.3f}, '
              f'{row["high"]:+.3f}]  ({row["used"]} of {args.resamples} '
              'resamples)')
    if count < FEW:
        print(f'Only {count}: p-values and intervals are rough, and the '
              'interval of a percentile bootstrap is too narrow.')


def main():
    args = parse_args()
    check_args(args)
    runs = read_runs_table(args.csv, args.statistic) if args.csv else [
        read_run(folder, args.metric, args.record, args.best, args.statistic,
                 args.definition)
        for folder in args.work_dirs
    ]
    check_runs(runs)
    print_runs(runs, args.metric, args.statistic)
    choice = args.resamples, args.seed, args.confidence
    found = dict(runs=correlate(runs, *choice))
    print_result('TNS and the metric over runs', len(runs), found['runs'],
                 args)
    methods = group_means(runs)
    if len(methods) > 2:
        check_runs(methods)
        found['methods'] = correlate(methods, *choice)
        print_result("Means of the methods' seeds", len(methods),
                     found['methods'], args)
    elif methods:
        print(f'\nMeans of seeds: {len(methods)} methods only, 3 are needed')
    write(args, runs, found)


def check_args(args) -> None:
    if bool(args.csv) == bool(args.work_dirs):
        raise ValueError('WORK_DIRS, --csv: expected one of the two, got '
                         f'{"both" if args.csv else "neither"}; name one')
    if args.csv and args.definition:
        raise ValueError('--definition: expected work dirs, whose records '
                         'have one, got --csv; leave it out')
    if args.resamples < 100 or not 0 < args.confidence < 1:
        raise ValueError(
            '--resamples, --confidence: expected at least 100 and a number '
            f'between 0 and 1, got {args.resamples} and {args.confidence}; '
            'change them')
    read = [args.csv, *(path for folder in args.work_dirs
                        for pattern in (args.record, '*/vis_data/*')
                        for path in folder.glob(pattern))]
    check_output('--json', args.json, read)
    check_output('--figure', args.figure, read)


def write(args, runs: list, found: dict) -> None:
    if args.json:
        options = {
            key: getattr(args, key)
            for key in ('metric', 'best', 'statistic', 'definition',
                        'resamples', 'seed', 'confidence')
        }
        content = dict(options, runs=runs, correlation=found)
        with written_whole(args.json) as file:
            file.write(json.dumps(content, indent=1).encode())
    if args.figure:
        draw(args, runs, found['runs'])


def draw(args, runs: list, found: dict) -> None:
    tau, rho = (found[name]['statistic'] for name in STATISTICS)
    title = (f"{len(runs)} runs: Kendall's τ {tau:+.2f}, "
             f"Spearman's ρ {rho:+.2f}")
    with style.use(args.size, args.theme):
        save_figure(
            plot_correlation(runs, args.metric, title,
                             LABELS[args.statistic]), args.figure)


if __name__ == '__main__':
    main()
