#!/usr/bin/env python
"""Rank correlation between TNS and performance over many runs (Fig. 7).

python tools/analysis/correlate.py work_dirs/methods/* --figure fig7.png

Of each work dir: TNS is that of its stiffness record (*.jsonl), the metric
that of mmengine's scalars.json. Where no work dir has a record, it is what
TNSMetric logged beside the metric. Or --csv FILE: a line a run, with the
columns name, tns, metric.

Prints Kendall's tau-b and Spearman's rho with two-sided p-values and
percentile bootstrap intervals over runs. Runs named <method>_seedN are no
independent draws, so the correlation of the methods' means is printed too.
"""
import argparse
import csv
import json
import math
from pathlib import Path

import numpy as np

from stepnet_mm.stiffness import read_record, total_neural_stiffness
from stepnet_mm.visualization.correlation import method_of, plot_correlation

#: Names of ours -> functions of scipy.stats.
STATISTICS = dict(kendall='kendalltau', spearman='spearmanr')
TNS = 'stiffness_eval/tns'
#: Fewer runs than this give rough p-values and intervals.
FEW = 10


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('work_dirs', nargs='*', type=Path)
    parser.add_argument('--csv', type=Path, help='table in place of work dirs')
    parser.add_argument(
        '--metric', default='accuracy/top1', help='its key in scalars.json')
    parser.add_argument(
        '--best',
        action='store_true',
        help='the highest value of the metric in place of the last one')
    parser.add_argument(
        '--record',
        default='*.jsonl',
        help='file name of the records; the newest that fits is taken')
    parser.add_argument(
        '--resamples', type=int, default=2000, help='of the bootstrap')
    parser.add_argument('--seed', type=int, default=0, help='of the bootstrap')
    parser.add_argument(
        '--confidence', type=float, default=.95, help='of the intervals')
    parser.add_argument('--json', type=Path, help='file for the numbers')
    parser.add_argument('--figure', type=Path, help='picture to write')
    return parser.parse_args()


def read_csv(path: Path) -> list:
    """The runs of a table."""
    with open(path, newline='') as file:
        rows = list(csv.DictReader(file))
    try:
        return [
            dict(
                name=row['name'],
                tns=float(row['tns']),
                metric=float(row['metric']),
                source=path.name,
                definition=None) for row in rows
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f'{path}: expected the columns name, tns and metric '
                         f'with numbers in the last two: {error!r}') from None


def read_work_dir(folder: Path, args) -> dict:
    """One run: its metric, and TNS from its record or its scalars."""
    if not folder.is_dir():
        raise FileNotFoundError(f'{folder}: expected a work dir')
    lines = [line for line in scalars(folder) if args.metric in line]
    if not lines:
        raise ValueError(
            f'{folder}: no <run>/vis_data/scalars.json in it has '
            f'{args.metric!r}; name another key with --metric')
    line = lines[-1]
    if args.best:
        line = max(lines, key=lambda line: line[args.metric])
    return dict(
        name=folder.resolve().name,
        metric=line[args.metric],
        **record_tns(folder, args.record, line))


def scalars(folder: Path):
    """What mmengine logged, of all runs in a work dir, in order."""
    for path in sorted(folder.glob('*/vis_data/scalars.json')):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            try:
                yield json.loads(line)
            except ValueError:
                raise ValueError(f'{path}: line {number} is no JSON; delete '
                                 'it, a kill may have cut it') from None


def record_tns(folder: Path, pattern: str, line: dict) -> dict:
    """TNS of a run, where it comes from and which definition it follows."""
    found = sorted(folder.glob(pattern), key=lambda path: path.stat().st_mtime)
    if found:
        record = read_record(found[-1])
        tns = total_neural_stiffness(record.nsi, record.stage)
        finite = tns[tns.isfinite()]
        return dict(
            tns=finite.mean().item() if len(finite) else math.inf,
            source=found[-1].name,
            definition=conditions(record.header))
    if TNS in line:
        return dict(tns=line[TNS], source='scalars.json', definition=None)
    raise ValueError(
        f'{folder}: has no record {pattern} and no {TNS} beside the metric; '
        'make one with tools/analysis/measure_stiffness.py or train with '
        'TNSMetric in val_evaluator')


def conditions(header) -> str:
    """What must be alike in all records."""
    kind = 'start' if header.meta.get('checkpoint') == 'none' else 'trained'
    return (f'{header.definition}, {kind} network, '
            f'{header.meta.get("dataset", "unknown data")}')


def check_runs(runs: list) -> None:
    """Refuse what gives no correlation, or one of unlike numbers."""
    if len(runs) < 3:
        raise ValueError(f'expected at least 3 runs, got {len(runs)}')
    definitions = {run['definition'] or 'unknown' for run in runs}
    if len(definitions) > 1:
        some = {run['definition'] or 'unknown': run['name'] for run in runs}
        raise ValueError(
            'expected TNS of one definition of NSI, on the same data, got '
            f'(with a run of each): {some}; measure all runs alike, or name '
            'the right records with --record (logged scalars do not say '
            'theirs)')
    for key in ('tns', 'metric'):
        for run in runs:
            if not math.isfinite(run[key]):
                raise ValueError(f'{run["name"]}: its {key} is {run[key]}, '
                                 'expected a finite number')
        if len({run[key] for run in runs}) == 1:
            raise ValueError(
                f'{key}: is {runs[0][key]} in all {len(runs)} runs, so there '
                'is no rank to correlate')


def correlate(runs: list, args) -> dict:
    """Both correlations with p-value and bootstrap interval, by name."""
    from scipy import stats  # takes longer to import than all else here
    x, y = (np.array([run[key] for run in runs]) for key in ('tns', 'metric'))
    found = {}
    for name, function in STATISTICS.items():
        function = getattr(stats, function)
        value, p = function(x, y)
        found[name] = dict(
            statistic=float(value),
            p=float(p),
            **bootstrap(function, x, y, args))
    return found


def bootstrap(function, x: np.ndarray, y: np.ndarray, args) -> dict:
    """Percentile interval over resampled runs.

    A resample without two different values has no correlation; these are
    left out and counted.
    """
    rng = np.random.default_rng(args.seed)
    draws = rng.integers(len(x), size=(args.resamples, len(x)))
    values = [
        function(x[i], y[i])[0] for i in draws if np.ptp(x[i]) and np.ptp(y[i])
    ]
    tail = 50 * (1 - args.confidence)
    low, high = np.percentile(values, [tail, 100 - tail])
    return dict(low=float(low), high=float(high), used=len(values))


def group_means(runs: list) -> list:
    """The mean of each method's seeds; empty if no method has several."""
    groups = {}
    for run in runs:
        groups.setdefault(method_of(run['name']), []).append(run)
    if len(groups) == len(runs):
        return []
    return [
        dict(
            name=name,
            definition=own[0]['definition'],
            tns=float(np.mean([run['tns'] for run in own])),
            metric=float(np.mean([run['metric'] for run in own])))
        for name, own in groups.items()
    ]


def print_runs(runs: list, metric: str) -> None:
    width = max(len(run['name']) for run in runs)
    print(f'{"run":<{width}}  {"TNS":>10}  {metric:>15}  TNS from')
    for run in sorted(runs, key=lambda run: -run['tns']):
        print(f'{run["name"]:<{width}}  {run["tns"]:10.5g}  '
              f'{run["metric"]:15.5g}  {run["source"]}')


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
    runs = read_csv(args.csv) if args.csv else [
        read_work_dir(folder, args) for folder in args.work_dirs
    ]
    check_runs(runs)
    print_runs(runs, args.metric)
    found = dict(runs=correlate(runs, args))
    print_result('TNS and the metric over runs', len(runs), found['runs'],
                 args)
    methods = group_means(runs)
    if len(methods) > 2:
        check_runs(methods)
        found['methods'] = correlate(methods, args)
        print_result("Means of the methods' seeds", len(methods),
                     found['methods'], args)
    elif methods:
        print(f'\nMeans of seeds: {len(methods)} methods only, 3 are needed')
    write(args, runs, found)


def check_args(args) -> None:
    if bool(args.csv) == bool(args.work_dirs):
        raise ValueError('expected work dirs or --csv FILE, got '
                         f'{"both" if args.csv else "neither"}')
    if args.resamples < 100 or not 0 < args.confidence < 1:
        raise ValueError(
            'expected --resamples >= 100 and --confidence between 0 and 1, '
            f'got {args.resamples} and {args.confidence}')


def write(args, runs: list, found: dict) -> None:
    if args.json:
        options = {
            key: getattr(args, key)
            for key in ('metric', 'best', 'resamples', 'seed', 'confidence')
        }
        args.json.write_text(
            json.dumps(dict(options, runs=runs, correlation=found), indent=1))
    if args.figure:
        tau, rho = (found['runs'][name]['statistic'] for name in STATISTICS)
        plot_correlation(
            runs, args.metric,
            f"{len(runs)} runs: Kendall's τ {tau:+.2f}, "
            f"Spearman's ρ {rho:+.2f}").savefig(
                args.figure, dpi=120)


if __name__ == '__main__':
    main()
