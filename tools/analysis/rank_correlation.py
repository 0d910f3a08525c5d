"""TNS against a metric over runs: rank correlations and Fig. 7."""
import warnings

import numpy as np
import pandas as pd
from scipy import stats
from work_dirs import method_of, read_run

from stepnet_mm.utils.command_line import check_output
from stepnet_mm.visualization import save_figure, style
from stepnet_mm.visualization.stiffness_figures import TNS

#: Of the bootstrap. A batch of resamples of 10^5 runs takes 160 MB.
RESAMPLES, BATCH = 2000, 100
#: Below it Spearman's p counts all orders of the runs, at most 720.
EXACT = 7


def correlate(runs: pd.DataFrame) -> pd.DataFrame:
    """Kendall's tau-b and Spearman's rho of ``tns`` and ``metric`` of runs.

    Returns:
        DataFrame: for each the ``statistic``, its two-sided p-value ``p``,
        and the 95 % bootstrap interval over runs from ``low`` to ``high``.
        Resamples of equal values do not count.

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
    for name, test in (('kendall', stats.kendalltau),
                       ('spearman', stats.spearmanr)):
        value, p = test(x, y)
        # SciPy's p of Spearman is of a t distribution, 0 where rho is 1.
        if name == 'spearman' and len(x) < EXACT:
            p = stats.permutation_test(
                (x, ), lambda x: stats.spearmanr(x, y).statistic,
                permutation_type='pairings', vectorized=False).pvalue
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')  # drawn alike: NaN
            drawn = stats.bootstrap(
                (x, y), lambda *pair, test=test: test(*pair).statistic,
                paired=True, n_resamples=RESAMPLES, batch=BATCH,
                vectorized=False, method='percentile',
                rng=np.random.default_rng(0)).bootstrap_distribution
        low, high = np.nanquantile(drawn, [.025, .975])
        found[name] = dict(statistic=value, p=p, low=low, high=high)
    return pd.DataFrame(found).T


@style.styled
def plot_correlation(runs: pd.DataFrame, metric: str, tns: str, title: str):
    """Scatter of ``metric`` over ``tns`` of runs, by method (Fig. 7)."""
    figure = style.new_figure(7, 5)
    axes = figure.subplots()
    methods = dict([*runs.groupby(runs['name'].map(method_of), sort=False)])
    for (method, own), mark in zip(methods.items(), style.marks([*methods])):
        axes.scatter(own['tns'], own['metric'], label=method, **mark)
    axes.set(xlabel=tns, ylabel=metric, title=title)
    style.legend_below(figure, list(axes.collections))
    return figure


def draw_runs(args) -> None:
    """Tables of runs and of their correlations, and Fig. 7, for plot.py."""
    check_output('--figure', args.figure, [
        path for source in args.sources for pattern in
        ('*.jsonl', '*/vis_data/*') for path in source.glob(pattern)])
    runs = pd.DataFrame([
        read_run(folder, args.metric, args.statistic, args.definition)
        for folder in args.sources])
    some = dict(zip(runs['definition'], runs['name']))
    if len(some) > 1:
        raise ValueError(
            'runs: expected TNS of one definition of NSI, on the same data, '
            f'got (with a run of each): {some}; measure all runs alike, or '
            'name one with --definition')
    shown = runs.sort_values('tns', ascending=False, kind='stable')
    print(shown[['name', 'tns', 'metric', 'source']].to_string(index=False))
    label = f'TNS (Eq. 5), {TNS[args.statistic]} of samples'
    print(f'tns: {label}; metric: {args.metric}; definition '
          f'of NSI: {runs["definition"][0]}')
    found = print_correlation('TNS and the metric over runs', runs)
    means = runs.groupby(runs['name'].map(method_of), sort=False)[
        ['tns', 'metric']].mean()
    if 2 < len(means) < len(runs):
        print_correlation("Means of the methods' seeds", means)
    if args.figure:
        tau, rho = found['statistic']
        title = (f"{len(runs)} runs: Kendall's τ {tau:+.2f}, "
                 f"Spearman's ρ {rho:+.2f}")
        save_figure(plot_correlation(runs, args.metric, label, title),
                    args.figure)


def print_correlation(title: str, runs: pd.DataFrame) -> pd.DataFrame:
    """Print what :func:`correlate` finds, and return it."""
    found = correlate(runs)
    print(f'\n{title} (n = {len(runs)}); low to high: 95 % bootstrap '
          'interval,\ntoo narrow with less than ten runs')
    print(found.to_string(float_format='{:.4g}'.format))
    return found
