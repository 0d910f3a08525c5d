"""Rank correlation between TNS and performance over runs (Fig. 7)."""
import math
import re
from collections.abc import Callable

import numpy as np

from .runs import Run

#: Names of ours -> functions of scipy.stats.
STATISTICS = dict(kendall='kendalltau', spearman='spearmanr')


def method_of(name: str) -> str:
    """The name of a run without its ``_seedN``."""
    return re.sub(r'_seed\d+$', '', name)


def check_runs(runs: list[Run]) -> None:
    """Refuse runs that give no correlation, or whose TNS do not compare.

    Raises:
        ValueError: on fewer than three runs, several definitions of NSI, a
            number that is not finite, or equal values everywhere.
    """
    if len(runs) < 3:
        raise ValueError(f'runs: expected at least 3, got {len(runs)}')
    some = {run['definition'] or 'unknown': run['name'] for run in runs}
    if len(some) > 1:
        raise ValueError(
            'runs: expected TNS of one definition of NSI, on the same data, '
            f'got (with a run of each): {some}; measure all runs alike, or '
            'name the right records with --record (logged scalars do not say '
            'theirs)')
    _check_values('tns', [(run['name'], run['tns']) for run in runs])
    _check_values('metric', [(run['name'], run['metric']) for run in runs])


def correlate(runs: list[Run], resamples: int = 2000, seed: int = 0,
              confidence: float = .95) -> dict[str, dict]:
    """Kendall's tau-b and Spearman's rho of TNS and the metric.

    Args:
        runs (list[Run]): at least three.
        resamples (int): of the bootstrap over runs.
        seed (int): of the bootstrap.
        confidence (float): of its percentile intervals.

    Returns:
        dict: for each of :data:`STATISTICS` the ``statistic``, its two-sided
        p-value ``p``, the interval from ``low`` to ``high``, and ``used``,
        how many resamples it comes from.
    """
    from scipy import stats  # takes longer to import than all else here
    x = np.array([run['tns'] for run in runs])
    y = np.array([run['metric'] for run in runs])
    found = {}
    for name, key in STATISTICS.items():
        function = getattr(stats, key)
        value, p = function(x, y)
        draws = np.random.default_rng(seed).integers(
            len(x), size=(resamples, len(x)))
        found[name] = dict(
            statistic=float(value),
            p=float(p),
            **_interval(function, x, y, draws, confidence))
    return found


def group_means(runs: list[Run]) -> list[Run]:
    """The mean of each method's seeds; empty if no method has several."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(method_of(run['name']), []).append(run)
    if len(groups) == len(runs):
        return []
    return [
        Run(name=name,
            definition=own[0]['definition'],
            source='seeds',
            tns=float(np.mean([run['tns'] for run in own])),
            metric=float(np.mean([run['metric'] for run in own])))
        for name, own in groups.items()
    ]


def _check_values(key: str, values: list[tuple[str, float]]) -> None:
    for name, value in values:
        if not math.isfinite(value):
            raise ValueError(
                f'{name}: expected a finite {key}, got {value}')
    if len({value for _, value in values}) == 1:
        raise ValueError(
            f'{key}: expected different values, which can be ranked, got '
            f'{values[0][1]} in all {len(values)} runs')


def _interval(function: Callable, x: np.ndarray, y: np.ndarray,
              draws: np.ndarray, confidence: float) -> dict:
    """Percentile interval over resampled runs.

    A resample without two different values has no correlation; these are
    left out and counted.
    """
    values = [
        function(x[i], y[i])[0] for i in draws if np.ptp(x[i]) and np.ptp(y[i])
    ]
    tail = 50 * (1 - confidence)
    low, high = np.percentile(values, [tail, 100 - tail])
    return dict(low=float(low), high=float(high), used=len(values))
