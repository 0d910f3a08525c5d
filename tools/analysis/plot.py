#!/usr/bin/env python
"""Draw what was measured: figures, tables and a report, from records alone.

plot.py stiffness RECORD...       NSI and TNS: Fig. 2, 3, 6, 8 to 10 (figures/)
plot.py training WORK_DIR         what a TNSHook logged, by iteration (tns.png)
plot.py attention SOURCE...       what an AttentionMapHook left (attention_*)
plot.py report WORK_DIR           all of it on one page (report.html)

`plot.py KIND --help` says what each does; measure_stiffness.py makes RECORDs.
"""
import stepnet_mm.utils.interrupts  # Ctrl-C from here on

import argparse
import inspect
import math
import re
import sys
from functools import partial
from pathlib import Path

from paper_figures import has_steps, method_of, step_figure, tns_figure
from report_page import render_report

from stepnet_mm import attention, stiffness, visualization
from stepnet_mm.utils import command_line
from stepnet_mm.utils.files import atomic_write
from stepnet_mm.utils.training_logs import logged

FIGURES = dict(tns=tns_figure, survival=visualization.survival_figure,
               depth=visualization.depth_figure,
               proportion=visualization.proportion_figure, step=step_figure,
               seeds=visualization.seeds_figure)


def parse_args():
    parser = command_line.command_parser(__doc__)
    add_kind = partial(_add_kind, parser.add_subparsers(
        metavar='KIND', required=True))
    kind = add_kind('stiffness', draw_stiffness, dest='records', nargs='+',
                    metavar='RECORD')
    kind.add_argument('--figures', nargs='+', choices=tuple(FIGURES),
                      help='default: all that apply to the records')
    _add_pictures(kind, 'figures beside RECORD')
    kind.add_argument('--degree', nargs=2, type=float, metavar=('M1', 'M2'),
                      help='print the shares of samples and blocks that are '
                      'stiff to it (§3.1)')
    kind = add_kind('training', draw_training, dest='work_dir')
    kind.add_argument('--out', type=command_line.output_file,
                      help='picture; default: WORK_DIR/tns.png')
    kind.add_argument('--hook', default='stiffness',
                      help='name of the TNSHook; default: stiffness')
    kind = add_kind('attention', draw_attention, dest='sources', nargs='+',
                    metavar='SOURCE', help='one work dir, or records (.npz)')
    kind.add_argument('--hook', default='attention',
                      help='name of the AttentionMapHook; default: attention')
    _add_pictures(kind, 'beside the first source')
    kind = add_kind('report', draw_report, dest='work_dir')
    kind.add_argument('--records', nargs='+', type=Path,
                      help='default: WORK_DIR/*.jsonl')
    kind.add_argument('--definition', choices=stiffness.DEFINITIONS,
                      help='of NSI, of what is shown (default: residual if '
                      'there is one)')
    kind.add_argument('--out', type=command_line.output_file,
                      help='default: WORK_DIR/report.html')
    return parser.parse_args()


def _add_kind(kinds, name, draw, **source):
    kind = kinds.add_parser(
        name, description=inspect.getdoc(draw),
        formatter_class=argparse.RawDescriptionHelpFormatter)
    kind.set_defaults(draw=draw)
    kind.add_argument(type=Path, **source)
    return kind


def _add_pictures(kind, default):
    kind.add_argument('--out', type=Path, help=f'folder; default: {default}')
    kind.add_argument('--format', choices=('png', 'svg', 'pdf'),
                      default='png', help='of the pictures')


def save(args, out, name, stem, figure):
    """Write a picture into a folder, and say where it is."""
    path = (args.out or out) / f'{stem}.{args.format}'
    visualization.save_figure(figure, path)
    print(f'{name}: {path}')


def draw_stiffness(args):
    """NSI and TNS of networks: a table of TNS, and a file of each figure.

    tns         TNS of several networks, with intervals (Fig. 8)
    survival    δ(M1, M2) as heat maps, with TNS (Fig. 2)
    depth       NSI along depth, with bands over samples (Fig. 3)
    proportion  stiffness proportion p̂(M1, M2) (Fig. 6)
    step        step size against NSI, a file a record with known gates
                (Fig. 9)
    seeds       NSI along depth of several seeds of one model (Fig. 10)

    All need one definition of NSI. Samples with an inf or NaN are left out
    and counted. Records named alike but for _seedN (measure_stiffness.py
    --name) are seeds of one network. Without --figures, what does not apply
    is skipped.
    """
    records = [stiffness.read_stiffness_record(path) for path in args.records]
    visualization.check_records(records)
    print_tns(records)
    if args.degree:
        print_shares(records, *args.degree)
    for name in args.figures or FIGURES:
        if not args.figures and not applies(name, records):
            print(f'{name}: skipped, not for these records (see --help)')
            continue
        for stem, figure in figures_of(name, records).items():
            save(args, args.records[0].parent / 'figures', name, stem, figure)


def print_tns(records):
    """TNS of each record: mean, its standard error, and two quantiles."""
    names = stiffness.labels(records)
    width = max(map(len, [*names, 'model']))
    print(f'{"model":<{width}}  samples  not finite  definition  '
          'TNS (mean ± standard error, median, 95 % quantile)')
    for name, record in zip(names, records):
        tns = record.tns()
        mean, median, high = record.tns_summary().values()
        error = tns.std().item() / math.sqrt(len(tns))
        print(f'{name:<{width}}  {len(record.nsi):7d}  '
              f'{record.nonfinite:10d}  {record.header.definition:<10}  '
              f'{mean:.4g} ± {error:.2g}  {median:.4g}  {high:.4g}')


def print_shares(records, m1, m2):
    """The shares of samples and of blocks that are stiff to one degree."""
    shares = stiffness.stiffness_survival, stiffness.stiffness_proportion
    for name, record in zip(stiffness.labels(records), records):
        samples, blocks = (
            share(record.nsi, record.stage, [m1], [m2]).item()
            for share in shares)
        print(f'{name}: stiff to ({m1:g}, {m2:g}): {samples:.1%} of the '
              f'samples, {blocks:.1%} of the blocks')


def applies(figure, records):
    """Whether a figure shows something of the records."""
    several = len(records) > 1
    if figure == 'step':
        return any(map(has_steps, records))
    if figure == 'seeds':
        names = stiffness.labels(records)
        return several and len({*map(method_of, names)}) == 1
    return several or figure != 'tns'


def figures_of(name, records):
    """One kind of figure: file names without suffix -> Figures."""
    if name != 'step':
        return {name: FIGURES[name](records)}
    named = [*zip(stiffness.labels(records), records)]
    gated = [pair for pair in named if has_steps(pair[1])]
    return {'step_' + re.sub(r'[^\w.-]+', '_', label).strip('_'):
            step_figure(record)
            for label, record in gated or named}


def draw_training(args):
    """A table and the curve of what a TNSHook logged in a work dir."""
    out = args.out or args.work_dir / 'tns.png'
    command_line.check_output('--out', out, args.work_dir.glob('*/vis_data/*'))
    curves = read_stiffness_curves(args.work_dir)
    if args.hook not in curves:
        raise ValueError(
            f'{args.work_dir}: expected that {args.hook!r} has logged, got '
            f'TNSHooks named {[*curves] or None}; name one by --hook, another '
            'folder, or train beyond the interval')
    curve = curves[args.hook]
    keys = ['step', 'tns', 'tns_median', 'tns_q95',
            *sorted({k for row in curve for k in row if k.endswith('_mean')})]
    print('  '.join(f'{key:>15}' for key in keys))
    for row in curve:
        print('  '.join(f'{row.get(k, math.nan):>15.4g}' for k in keys))
    out = visualization.save_figure(visualization.training_figure(curve), out)
    print(f'TNS curve: {out}')


def draw_attention(args):
    """Where attention heads looked, by iteration: a table and two files.

    maps   each head's attention of the query pixel by layer, at the end
           (Fig. 4)
    range  mean attention distance by layer and head, and over the iterations

    Of what an AttentionMapHook left in a work dir, or of records by name.
    """
    source = args.sources[0]
    records = sorted(
        attention.read_attention_history(source, args.hook) if source.is_dir()
        else map(attention.read_attention_record, args.sources),
        key=lambda record: record.iteration)
    print('mean attention distance, px of the image, mean over heads')
    layers = range(1, len(records[-1].layers) + 1)
    print(command_line.aligned([
        ('iteration', *(f'layer {i}' for i in layers)),
        *((str(record.iteration), *(f'{layer.mean_distance:.2f}'
                                    for layer in record.layers))
          for record in records)]))
    out = source if source.is_dir() else source.parent
    for name, figure in visualization.attention_figures(records).items():
        save(args, out, name, f'attention_{name}', figure)


def read_stiffness_curves(work_dir):
    """The measurements of every ``TNSHook`` in a work dir, by its name.

    Each has ``step``, the iteration, ``tns``, ``nsi_stage1_mean`` and so on.
    Of a start these are the ones before the first step of a later start.
    """
    curves = {}
    for hook in sorted({p.stem for p in work_dir.glob('*/vis_data/*.json')}):
        found, most = [], 0
        for lines in logged(work_dir, hook):
            # As TNSHook logs it; step is the iteration.
            if rows := [
                    {key.removeprefix(f'{hook}/'): value
                     for key, value in line.items()} for line in lines
                    if {type(line.get(key)) for key in (
                        f'{hook}/nonfinite', 'step')} <= {int, float}]:
                most = max(most, rows[-1]['step'])
                found = [row for row in found
                         if row['step'] < rows[0]['step']] + rows
        if found:
            curves[hook] = found
            if (last := found[-1]['step']) < most:
                print(f'{work_dir}: the last start, begun anew or from an '
                      f'older checkpoint, logged {hook} up to step {last}; '
                      f'what earlier ones logged up to {most} is left out',
                      file=sys.stderr)
    return curves


def draw_report(args):
    """One report.html, which asks for nothing from outside.

    It has the stiffness records, the curve of each TNSHook and the pictures
    of each AttentionMapHook.
    """
    paths = args.records or sorted(args.work_dir.glob('*.jsonl'))
    out = args.out or args.work_dir / 'report.html'
    command_line.check_output(
        '--out', out, [*paths, *args.work_dir.glob('*/*/*')])
    shown = of_one_definition(paths, args.definition, args.work_dir)
    records = [stiffness.read_stiffness_record(path) for path in shown]
    left = ', '.join(path.name for path in paths if path not in shown)
    print(f'Definition of NSI: {records[0].header.definition}'
          + (f'; of others, not shown: {left}' if left else ''))
    names = [record.name for record in records]
    for name, path, record in zip(names, shown, records):
        if names.count(name) > 1:
            record.header.meta['name'] = f'{name}, {path.name}'
    page = render_report(
        f'Neural stiffness of {args.work_dir.resolve().name}', records,
        read_stiffness_curves(args.work_dir),
        attention.read_attention_histories(args.work_dir))
    with atomic_write(out) as file:
        file.write(page.encode())
    print(f'Report: {out}')


def of_one_definition(paths, wanted, source):
    """The records of one definition of NSI, some of them unfinished.

    It is the wanted one or, with None, the first of ``DEFINITIONS`` that a
    record has.

    Raises:
        ValueError: if no record has it, or a file is no record.
    """
    found, known = {}, stiffness.DEFINITIONS
    for path in paths:
        header = stiffness.read_stiffness_record(path, partial=True).header
        found.setdefault(header.definition, []).append(path)
    chosen = wanted or next(filter(found.get, known), known[0])
    if chosen not in found:
        raise ValueError(
            f'{source}: expected a record of definition {chosen!r}, got '
            f'{sorted(found) or None}; make one with measure_stiffness.py, or '
            'name another folder or --definition')
    return found[chosen]


if __name__ == '__main__':
    args = parse_args()
    args.draw(args)
