"""TNS and performance over runs: rank correlations and Fig. 7."""
import math
import warnings

import numpy as np
import pandas as pd
from scipy import stats
from work_dirs import method_of

from stepnet_mm.visualization.style import (
    legend_below,
    mark,
    new_figure,
    styled,
)

#: Of the bootstrap. A batch of resamples of 10^5 runs takes 160 MB.
RESAMPLES, BATCH = 2000, 100
#: Below it Spearman's p counts all orders of the runs, at most 720.
FEW = 7


def spearman(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Spearman's rho and its two-sided p, exact for few runs.

    SciPy's p is that of a t distribution, 0 where rho is 1 or -1.
    """
    rho, p = stats.spearmanr(x, y)
    if len(x) < FEW:
        p = stats.permutation_test(
            (x, ), lambda x: stats.spearmanr(x, y).statistic,
            permutation_type='pairings', vectorized=False).pvalue
    return rho, p


def correlate(runs: pd.DataFrame) -> dict[str, dict]:
    """Kendall's tau-b and Spearman's rho of TNS and the metric.

    Args:
        runs (DataFrame): at least three, with ``name``, ``tns`` and
            ``metric``.

    Returns:
        dict: for ``'kendall'`` and ``'spearman'`` the ``statistic``, its
        two-sided p-value ``p``, the 95 % bootstrap interval over runs from
        ``low`` to ``high``, and ``used``, how many resamples it comes from:
        those with different values.

    Raises:
        ValueError: on fewer than three runs, a number that is not finite, or
            equal values everywhere.
    """
    check_runs(runs)
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


def check_runs(runs: pd.DataFrame) -> None:
    """Refuse runs without a correlation, as :func:`correlate` says."""
    if len(runs) < 3:
        raise ValueError(f'runs: expected at least 3, got {len(runs)}')
    for key in ('tns', 'metric'):
        for name, value in zip(runs['name'], runs[key]):
            if not math.isfinite(value):
                raise ValueError(
                    f'{name}: expected a finite {key}, got {value}')
        if runs[key].nunique() == 1:
            raise ValueError(
                f'{key}: expected different values, which can be ranked, got '
                f'{runs[key].iloc[0]} in all {len(runs)} runs')


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
                     label: str = 'TNS (Eq. 5)'):
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
