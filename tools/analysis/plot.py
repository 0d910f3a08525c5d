#!/usr/bin/env python
"""Draw what was measured: figures, tables and a report, from records alone.

plot.py stiffness RECORD...       NSI and TNS: Fig. 2, 3, 6, 8 to 10 (figures/)
plot.py training WORK_DIR         what a TNSHook logged, by iteration (tns.png)
plot.py runs WORK_DIR...          TNS against a metric, over runs (Fig. 7)
plot.py report WORK_DIR           all of it on one page (report.html)

python tools/analysis/plot.py stiffness --help says what each does. Records
are made by tools/analysis/measure_stiffness.py.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import argparse
import math
import sys
from functools import partial
from pathlib import Path

from property_figure import property_figure
from step_figures import has_steps, step_figure
from stiffness_page import render_report
from tns_by_method import group_seeds, tns_figure
from work_dirs import of_one_definition, read_stiffness_curves

from stepnet_mm.attention import read_attention_histories
from stepnet_mm.stiffness import (
    DEFINITIONS,
    labels,
    read_stiffness_record,
    stiffness_proportion,
    stiffness_survival,
)
from stepnet_mm.utils.command_line import (
    check_output,
    command_parser,
    output_file,
    output_folder,
)
from stepnet_mm.utils.files import written_whole
from stepnet_mm.visualization import (
    check_records,
    curve_figure,
    depth_figure,
    file_name,
    proportion_figure,
    save_figure,
    seeds_figure,
    style,
    survival_figure,
)

STIFFNESS = """NSI and TNS of networks, a file of each figure.

tns         TNS of each network, with intervals (Fig. 8)
survival    δ(M1, M2) as surfaces, with TNS (Fig. 2)
depth       NSI along depth, with bands over samples (Fig. 3)
proportion  stiffness proportion p̂(M1, M2) (Fig. 6)
step        step size against NSI, a file a record with gates (Fig. 9)
seeds       NSI along depth of several seeds of one model (Fig. 10)
properties  stiff samples and stiff blocks over M1 (§3.1), where asked for

All need one definition of NSI. Samples with an inf or NaN are left out and
counted. Records named alike but for _seedN are seeds of one network. Without
--figures, what does not apply is skipped.
"""
TRAINING = 'What a TNSHook logged in a work dir.'
RUNS = """Rank correlation between TNS and performance over many runs (Fig. 7).

Of each work dir: TNS is that of its newest stiffness record (*.jsonl) of one
definition, the metric that of mmengine's scalars.json. Where no work dir has a
record, it is what TNSMetric logged beside the metric.

TNS of a run is the mean over samples (Eq. 5), as in the paper; with
--statistic tns_median or tns_q95 it is their median or 95 % quantile, which
few extreme samples do not move.

Prints Kendall's tau-b and Spearman's rho with two-sided p-values and 95 %
percentile bootstrap intervals over runs. Runs named <method>_seedN are no
independent draws, so the correlation of the methods' means is printed too.
"""
REPORT = """One report.html, which asks for nothing from outside.

It has the stiffness records, the curve of each TNSHook and the pictures of
each AttentionMapHook.
"""
#: By default, in this order; properties only where asked for.
FIGURES = ('tns', 'survival', 'depth', 'proportion', 'step', 'seeds')


def parse_args():
    parser = command_parser(__doc__)
    kinds = parser.add_subparsers(metavar='KIND', required=True)
    for name, text, add_options, draw in (
            ('stiffness', STIFFNESS, add_stiffness, draw_stiffness),
            ('runs', RUNS, add_runs, draw_runs),
            ('training', TRAINING, add_training, draw_training),
            ('report', REPORT, add_report, draw_report)):
        kind = kinds.add_parser(
            name, description=text, help=text.partition('\n')[0],
            formatter_class=argparse.RawDescriptionHelpFormatter)
        kind.set_defaults(draw=draw)
        add_options(kind)
        if name != 'report':  # which has both themes
            style.add_options(kind)
    return parser.parse_args()


def add_stiffness(parser):
    parser.add_argument('records', nargs='+', type=Path, metavar='RECORD')
    parser.add_argument('--figures', nargs='+',
                        choices=(*FIGURES, 'properties'),
                        help='default: all that apply to the records')
    parser.add_argument('--out', type=output_folder,
                        help='folder; default: figures beside RECORD')
    parser.add_argument('--format', choices=('png', 'svg', 'pdf'),
                        default='png', help='of the pictures')
    parser.add_argument('--names', nargs='+',
                        help='what to call the records, one each')
    parser.add_argument('--m1', nargs='+', type=float, help='thresholds of '
                        'survival and proportion; default: by the data')
    parser.add_argument('--m2', nargs='+', type=float, help='the same for M2')
    parser.add_argument('--degree', nargs=2, type=float, default=(.5, 0.),
                        metavar=('M1', 'M2'),
                        help='of properties; default: 0.5 0')
    parser.add_argument('--blocks', nargs='+',
                        help='of step: blocks to show, by name')


def add_training(parser):
    parser.add_argument('work_dir', type=Path)
    parser.add_argument('--out', type=output_file,
                        help='picture; default: WORK_DIR/tns.png')
    parser.add_argument('--hook', help='name of the TNSHook, where the run '
                        'had several')


def add_runs(parser):
    parser.add_argument('sources', nargs='+', type=Path,
                        metavar='WORK_DIR')
    parser.add_argument('--metric', default='accuracy/top1',
                        help='its key in scalars.json')
    parser.add_argument('--statistic', default='tns',
                        choices=['tns', 'tns_median', 'tns_q95'],
                        help='of TNS over samples; default: tns, the mean')
    parser.add_argument('--definition', choices=DEFINITIONS, help='of NSI, of '
                        'the records (default: residual where a work dir has '
                        'it)')
    parser.add_argument('--json', type=output_file,
                        help='file for the numbers')
    parser.add_argument('--figure', type=output_file, help='picture to write')


def add_report(parser):
    parser.add_argument('work_dir', type=Path)
    parser.add_argument('--records', nargs='+', type=Path,
                        help='default: WORK_DIR/*.jsonl')
    parser.add_argument('--definition', choices=DEFINITIONS, help='of NSI: '
                        'shows the records of it alone (default: residual '
                        'where there is one)')
    parser.add_argument('--out', type=output_file,
                        help='default: WORK_DIR/report.html')
    parser.add_argument('--title', help='its heading (default: the name of '
                        'the work dir)')


def draw_stiffness(args):
    """A table of TNS, and every figure that applies or was asked for."""
    records = read_records(args.records, args.names)
    print_tns(records)
    out = args.out or args.records[0].parent / 'figures'
    for name in args.figures or FIGURES:
        reason = None if args.figures else why_not(name, records)
        if reason:
            print(f'{name}: skipped, {reason}')
            continue
        for stem, figure in figures_of(name, records, args).items():
            path = out / f'{stem}.{args.format}'
            save_figure(figure, path)
            print(f'{name}: {path}')


def read_records(paths, names=None):
    """The records, under new names if there are some."""
    if names and len(names) != len(paths):
        raise ValueError(f'--names: expected one for each of the {len(paths)} '
                         f'records, got {len(names)}; name each')
    records = [read_stiffness_record(path) for path in paths]
    if names:
        records = [r.renamed(name) for r, name in zip(records, names)]
    check_records(records)
    return records


def why_not(figure, records):
    """Why a figure does not apply to the records; None if it does."""
    several = len(records) > 1
    if figure == 'step' and not any(map(has_steps, records)):
        return 'no record has step sizes, the models have no known gate'
    if figure == 'tns' and not several:
        return 'there is one record, whose TNS the table has'
    if figure == 'seeds' and not (several and len(group_seeds(records)) == 1):
        return ('it needs two or more records whose names differ only in '
                '_seedN')
    return None


def figures_of(name, records, args):
    """One kind of figure: file names without suffix -> Figures."""
    if name == 'step':
        named = list(zip(labels(records), records))
        gated = [pair for pair in named if has_steps(pair[1])]
        return {f'step_{file_name(label)}': step_figure(record, args.blocks)
                for label, record in gated or named}
    m1, m2 = args.degree
    if name == 'properties':
        print_properties(records, m1, m2)
    draw = dict(
        tns=tns_figure, depth=depth_figure, seeds=seeds_figure,
        survival=partial(survival_figure, m1=args.m1, m2=args.m2),
        proportion=partial(proportion_figure, m1=args.m1, m2=args.m2),
        properties=partial(property_figure, m2=m2, mark=m1))
    return {name: draw[name](records)}


def print_tns(records):
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


def print_properties(records, m1, m2):
    """What share is stiff to one degree, of samples and of blocks."""
    for name, record in zip(labels(records), records):
        samples, blocks = (
            share(record.nsi, record.stage, [m1], [m2]).item()
            for share in (stiffness_survival, stiffness_proportion))
        print(f'{name}: stiff to ({m1:g}, {m2:g}): {samples:.1%} of the '
              f'samples, {blocks:.1%} of the blocks')


def draw_training(args):
    """A table and the curve of one TNSHook."""
    out = args.out or args.work_dir / 'tns.png'
    check_output('--out', out, args.work_dir.glob('*/vis_data/*'))
    curves = read_stiffness_curves(args.work_dir)
    hook = args.hook or ('stiffness' if 'stiffness' in curves
                         or len(curves) != 1 else min(curves))
    if hook not in curves:
        raise ValueError(
            f'--hook: expected a TNSHook that logged in {args.work_dir}, one '
            f'of {sorted(curves)}, got {hook!r}; name one, or train with '
            'TNSHook and LocalVisBackend')
    print_curve(curves[hook])
    save_figure(curve_figure(curves[hook]), out)
    print(f'TNS curve: {out}')


def print_curve(curve):
    found = sorted({k for row in curve for k in row})
    keys = ['step', 'tns', 'tns_median', 'tns_q95',
            *(k for k in found if k.endswith('_mean'))]
    print('  '.join(f'{k:>15}' for k in keys))
    for row in curve:
        print('  '.join(f'{row.get(k, float("nan")):>15.4g}' for k in keys))


def draw_runs(args):
    """Tables of runs and of their correlations, and Fig. 7."""
    from rank_correlation import draw_runs  # by pandas and scipy, alone
    draw_runs(args)


def draw_report(args):
    """The page of a work dir."""
    paths = args.records or sorted(args.work_dir.glob('*.jsonl'))
    if not paths:
        raise FileNotFoundError(
            f'{args.work_dir}: expected a stiffness record *.jsonl, got none; '
            'make one with tools/analysis/measure_stiffness.py, or name some '
            'with --records')
    out = args.out or args.work_dir / 'report.html'
    check_output('--out', out, [*paths, *args.work_dir.glob('*/*/*')])
    definition, shown = of_one_definition(
        paths, args.definition, args.work_dir)
    left = ', '.join(path.name for path in paths if path not in shown)
    print(f'Definition of NSI: {definition}'
          + (f'; of others, not shown: {left}' if left else ''))
    page = render_report(
        args.title or f'Neural stiffness of {args.work_dir.resolve().name}',
        named_by_file(shown), read_stiffness_curves(args.work_dir),
        read_attention_histories(args.work_dir))
    with written_whole(out) as file:
        file.write(page.encode())
    print(f'Report: {out}')


def named_by_file(paths):
    """The records, several of one name told apart by their files."""
    records = [read_stiffness_record(path) for path in paths]
    names = [record.name for record in records]
    return [record.renamed(f'{record.name}, {path.name}')
            if names.count(record.name) > 1 else record
            for path, record in zip(paths, records)]


def main():
    args = parse_args()
    with style.use(getattr(args, 'size', 'screen'),
                   getattr(args, 'theme', 'light')):
        args.draw(args)


if __name__ == '__main__':
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f'plot.py: error: {error}')
