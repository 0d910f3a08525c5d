"""TNS against a metric over runs: rank correlations and Fig. 7."""
import json
import warnings

import numpy as np
import pandas as pd
from scipy import stats
from trained_runs import check_definitions, method_means, read_run
from work_dirs import method_of

from stepnet_mm.utils.command_line import check_output
from stepnet_mm.utils.files import written_whole
from stepnet_mm.visualization import save_figure
from stepnet_mm.visualization.style import (
    legend_below,
    mark,
    new_figure,
    styled,
)

#: Of the bootstrap. A batch of resamples of 10^5 runs takes 160 MB.
RESAMPLES, BATCH = 2000, 100
#: Below it Spearman's p counts all orders of the runs, at most 720.
EXACT = 7
#: Fewer runs than this give rough p-values and intervals.
FEW = 10
#: What the figure calls each statistic of TNS over samples.
LABELS = dict(tns='TNS (Eq. 5)', tns_median='median TNS',
              tns_q95='95 % quantile of TNS')


def spearman(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Spearman's rho and its two-sided p, exact for few runs.

    SciPy's p is that of a t distribution, 0 where rho is 1 or -1.
    """
    rho, p = stats.spearmanr(x, y)
    if len(x) < EXACT:
        p = stats.permutation_test(
            (x, ), lambda x: stats.spearmanr(x, y).statistic,
            permutation_type='pairings', vectorized=False).pvalue
    return rho, p


def correlate(runs: pd.DataFrame) -> dict[str, dict]:
    """Kendall's tau-b and Spearman's rho of TNS and the metric.

    Args:
        runs (DataFrame): at least three, with ``tns`` and ``metric``.

    Returns:
        dict: for ``'kendall'`` and ``'spearman'`` the ``statistic``, its
        two-sided p-value ``p``, the 95 % bootstrap interval over runs from
        ``low`` to ``high``, and ``used``, how many resamples it comes from:
        those with different values.

    Raises:
        ValueError: on fewer than three runs, a number that is not finite, or
            equal values everywhere.
    """
    if len(runs) < 3:
        raise ValueError(f'runs: expected at least 3, got {len(runs)}')
    for key in ('tns', 'metric'):
        if not np.isfinite(runs[key]).all() or runs[key].nunique() == 1:
            raise ValueError(f'{key}: expected finite and different values, '
                             f'which can be ranked, got {runs[key].tolist()}')
    x, y = runs['tns'].to_numpy(), runs['metric'].to_numpy()
    found = {}
    for name, test, resampled in (
            ('kendall', stats.kendalltau, stats.kendalltau),
            ('spearman', spearman, stats.spearmanr)):
        value, p = test(x, y)
        drawn = _resampled(x, y, resampled)
        low, high = np.quantile(drawn, [.025, .975])
        found[name] = dict(statistic=float(value), p=float(p), low=float(low),
                           high=float(high), used=len(drawn))
    return found


def _resampled(x: np.ndarray, y: np.ndarray, function) -> np.ndarray:
    """A correlation of resampled runs, where it is defined."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # drawn alike: no number
        drawn = stats.bootstrap(
            (x, y), lambda *pair: function(*pair).statistic, paired=True,
            n_resamples=RESAMPLES, batch=BATCH, vectorized=False,
            method='percentile', rng=np.random.default_rng(0)
        ).bootstrap_distribution
    return drawn[np.isfinite(drawn)]


@styled
def plot_correlation(runs: pd.DataFrame, metric: str, title: str | None = None,
                     label: str = LABELS['tns']):
    """Scatter of the metric over TNS, a colour and marker per method (Fig. 7).

    Args:
        runs (DataFrame): ``name``, ``tns`` and ``metric`` of each run.
        metric (str): what the metric is called.
        title (str, optional): heading.
        label (str): of the axis of TNS.

    Returns:
        matplotlib.figure.Figure: to save or to show.
    """
    figure = new_figure(7, 5)
    axes = figure.subplots()
    methods = runs.groupby(runs['name'].map(method_of), sort=False)
    for i, (method, own) in enumerate(methods):
        axes.scatter(own['tns'], own['metric'], label=method, **mark(i))
    axes.set(xlabel=label, ylabel=metric, title=title)
    legend_below(figure, list(axes.collections))
    return figure


def draw_runs(args) -> None:
    """Tables of runs and of their correlations, and Fig. 7, for plot.py."""
    read = [path for source in args.sources for pattern in
            ('*.jsonl', '*/vis_data/*') for path in source.glob(pattern)]
    for key, path in (('--json', args.json), ('--figure', args.figure)):
        check_output(key, path, read)
    runs = pd.DataFrame([
        read_run(folder, args.metric, args.statistic, args.definition)
        for folder in args.sources])
    check_definitions(runs)
    shown = runs.sort_values('tns', ascending=False, kind='stable')
    print(shown[['name', 'tns', 'metric', 'source']].to_string(index=False))
    print(f'tns: {LABELS[args.statistic]}; metric: {args.metric}; definition '
          f'of NSI: {runs["definition"][0]}')
    found = dict(runs=correlate(runs))
    print_correlation('TNS and the metric over runs', len(runs), found['runs'])
    methods = method_means(runs)
    if 2 < len(methods) < len(runs):
        found['methods'] = correlate(methods)
        print_correlation("Means of the methods' seeds", len(methods),
                          found['methods'])
    write(args, runs, found)


def print_correlation(title: str, count: int, found: dict[str, dict]) -> None:
    print(f'\n{title} (n = {count}); low to high: 95 % bootstrap interval; '
          f'used: resamples of {RESAMPLES} with different values')
    print(pd.DataFrame(found).T.to_string(float_format='{:.4g}'.format))
    if count < FEW:
        print(f'Only {count}: p-values and intervals are rough, and the '
              'interval of a percentile bootstrap is too narrow.')


def write(args, runs: pd.DataFrame, found: dict[str, dict]) -> None:
    """The numbers and the figure, where they were asked for."""
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
