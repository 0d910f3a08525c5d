#!/usr/bin/env python
"""Figures of stiffness records, and a table of their TNS.

python tools/analysis/plot_stiffness.py work_dirs/*/stiffness.jsonl --out figs

tns         TNS of each network, with intervals (Fig. 8)
survival    δ(M1, M2) as surfaces, with TNS (Fig. 2)
depth       NSI along depth, with bands over samples (Fig. 3)
proportion  stiffness proportion p̂(M1, M2) (Fig. 6)
step        step size against NSI, a file a record with gates (Fig. 9)
seeds       NSI along depth of several seeds of one model (Fig. 10)

Records are made by tools/analysis/measure_stiffness.py. Those to compare
need one definition of NSI. Samples with an inf or NaN are left out and
counted. Those named alike but for _seedN are seeds of one network. Without
--figures, what does not apply is skipped: tns of one record, step without
known gates, seeds of several networks.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import argparse
import math
from pathlib import Path

from stepnet_mm.analysis import group_seeds
from stepnet_mm.stiffness import read_stiffness_record
from stepnet_mm.utils.command_line import output_folder
from stepnet_mm.visualization import (
    check_records,
    depth_figure,
    file_name,
    has_steps,
    labels,
    proportion_figure,
    save_figure,
    seeds_figure,
    step_figure,
    style,
    survival_figure,
    tns_figure,
)

FIGURES = ('tns', 'survival', 'depth', 'proportion', 'step', 'seeds')


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('records', nargs='+', type=Path, metavar='RECORD',
                        help='files of measure_stiffness.py')
    parser.add_argument(
        '--figures',
        nargs='+',
        choices=FIGURES,
        help='which to draw (default: all that apply to the records)')
    parser.add_argument(
        '--out', type=output_folder,
        help='folder; default: figures beside RECORD')
    parser.add_argument('--format', choices=('png', 'svg', 'pdf'),
                        default='png', help='of the pictures')
    parser.add_argument(
        '--names', nargs='+', help='what to call the records, one each')
    parser.add_argument(
        '--m1', nargs='+', type=float,
        help='thresholds of survival and proportion; default: by the data')
    parser.add_argument('--m2', nargs='+', type=float, help='the same for M2')
    parser.add_argument(
        '--blocks', nargs='+', help='of step: blocks to show, by name')
    parser.add_argument(
        '--stage', type=int, help='of step: stage of the distribution')
    style.add_options(parser)
    return parser.parse_args()


def read_records(paths: list, names: list = None) -> list:
    """The records, under new names if there are some."""
    if names and len(names) != len(paths):
        raise ValueError(f'--names: expected one for each of the {len(paths)} '
                         f'records, got {len(names)}; name each')
    records = [read_stiffness_record(path) for path in paths]
    if names:
        records = [r.renamed(name) for r, name in zip(records, names)]
    check_records(records)
    return records


def why_not(figure: str, records: list):
    """Why a figure does not apply to the records; None if it does."""
    if figure == 'step' and not any(map(has_steps, records)):
        return 'no record has step sizes, the models have no known gate'
    if figure == 'tns' and len(records) < 2:
        return 'there is one record, whose TNS the table has'
    if figure == 'seeds' and (
            len(records) < 2 or len(group_seeds(records)) > 1):
        return ('it needs two or more records whose names differ only in '
                '_seedN')
    return None


def draw(figure: str, records: list, args) -> dict:
    """One kind of figure: file names without suffix -> Figures."""
    if figure == 'step':
        return draw_steps(records, args)
    functions = dict(
        tns=tns_figure,
        survival=survival_figure,
        proportion=proportion_figure,
        depth=depth_figure,
        seeds=seeds_figure)
    thresholds = dict(m1=args.m1, m2=args.m2)
    options = thresholds if figure in ('survival', 'proportion') else {}
    return {figure: functions[figure](records, **options)}


def draw_steps(records: list, args) -> dict:
    """A figure of each record that has gates; of all, if none has."""
    named = list(zip(labels(records), records))
    shown = [(label, record) for label, record in named if has_steps(record)]
    for label, record in named if shown else ():
        if not has_steps(record):
            print(f'step: {label} skipped, it has no known gate')
    return {
        f'step_{file_name(label)}': step_figure(record, args.blocks,
                                                args.stage)
        for label, record in shown or named
    }


def print_table(records: list) -> None:
    """TNS of each record: mean, its standard error, and two quantiles."""
    names = labels(records)
    width = max(map(len, [*names, 'model']))
    print(f'{"model":<{width}}  samples  not finite  definition  '
          'TNS (mean ± standard error, median, 95 % quantile)')
    for name, record in zip(names, records):
        tns, total = record.tns().numpy(), len(record.nsi)
        mean, median, high = record.tns_summary().values()
        error = (f'{tns.std(ddof=1) / math.sqrt(len(tns)):.2g}'
                 if len(tns) > 1 else 'unknown')
        print(f'{name:<{width}}  {total:7d}  {total - len(tns):10d}  '
              f'{record.header.definition:<10}  {mean:.4g} ± {error}  '
              f'{median:.4g}  {high:.4g}')


def save_all(records: list, args) -> None:
    """Every figure that applies, or that was asked for."""
    out = args.out or args.records[0].parent / 'figures'
    for figure in args.figures or FIGURES:
        reason = None if args.figures else why_not(figure, records)
        if reason:
            print(f'{figure}: skipped, {reason}')
            continue
        for name, drawn in draw(figure, records, args).items():
            path = out / f'{name}.{args.format}'
            save_figure(drawn, path)
            print(f'{figure}: {path}')


def main():
    args = parse_args()
    records = read_records(args.records, args.names)
    print_table(records)
    with style.use(args.size, args.theme):
        save_all(records, args)


if __name__ == '__main__':
    main()
