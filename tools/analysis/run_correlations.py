"""TNS against a metric over runs, for plot.py: tables, a file, Fig. 7."""
import json

import pandas as pd
from rank_correlation import RESAMPLES, correlate, plot_correlation
from trained_runs import (
    check_definitions,
    method_means,
    read_run,
    read_runs_table,
)

from stepnet_mm.utils.command_line import aligned, check_output
from stepnet_mm.utils.files import written_whole
from stepnet_mm.visualization import save_figure

#: Fewer runs than this give rough p-values and intervals.
FEW = 10
#: What the figure calls each statistic of TNS over samples.
LABELS = dict(tns='TNS (Eq. 5)', tns_median='median TNS',
              tns_q95='95 % quantile of TNS')


def draw_runs(args):
    """Tables of runs and of their correlations, and Fig. 7."""
    read = [path for source in args.sources for pattern in
            ('*.jsonl', '*/vis_data/*') for path in source.glob(pattern)]
    for key, path in (('--json', args.json), ('--figure', args.figure)):
        check_output(key, path, [*args.sources, *read])
    runs = read_runs(args)
    check_definitions(runs)
    found = dict(runs=correlate(runs))
    print_runs(runs, args.metric, args.statistic)
    print_correlation('TNS and the metric over runs', len(runs),
                      found['runs'])
    methods = method_means(runs)
    if 2 < len(methods) < len(runs):
        found['methods'] = correlate(methods)
        print_correlation("Means of the methods' seeds", len(methods),
                          found['methods'])
    elif len(methods) < len(runs):
        print(f'\nMeans of seeds: {len(methods)} methods only, 3 are needed')
    write_runs(args, runs, found)


def read_runs(args):
    """A row for each run."""
    if len(args.sources) == 1 and not args.sources[0].is_dir():
        if args.definition:
            raise ValueError('--definition: expected work dirs, whose records '
                             'have one, got a table; leave it out')
        return read_runs_table(args.sources[0], args.statistic)
    return pd.DataFrame([
        read_run(folder, args.metric, args.statistic, args.definition)
        for folder in args.sources])


def print_runs(runs, metric, statistic):
    rows = runs.sort_values('tns', ascending=False, kind='stable')
    print(aligned([('run', statistic, metric, 'TNS from'), *(
        (run.name, f'{run.tns:.5g}', f'{run.metric:.5g}', run.source)
        for run in rows.itertuples())]))
    print(f'Definition of NSI: {runs["definition"][0]}')


def print_correlation(title, count, found):
    print(f'\n{title} (n = {count})')
    for name, row in found.items():
        print(f'{name:>9}: {row["statistic"]:+.3f}  p {row["p"]:.3g}  '
              f'95% interval [{row["low"]:+.3f}, {row["high"]:+.3f}]  '
              f'({row["used"]} of {RESAMPLES} resamples)')
    if count < FEW:
        print(f'Only {count}: p-values and intervals are rough, and the '
              'interval of a percentile bootstrap is too narrow.')


def write_runs(args, runs, found):
    if args.json:
        content = dict(
            metric=args.metric, statistic=args.statistic,
            definition=args.definition, runs=runs.to_dict('records'),
            correlation=found)
        with written_whole(args.json) as file:
            file.write(json.dumps(content, indent=1).encode())
    if args.figure:
        tau, rho = (row['statistic'] for row in found['runs'].values())
        title = (f"{len(runs)} runs: Kendall's τ {tau:+.2f}, "
                 f"Spearman's ρ {rho:+.2f}")
        save_figure(plot_correlation(runs, args.metric, title,
                                     LABELS[args.statistic]), args.figure)
