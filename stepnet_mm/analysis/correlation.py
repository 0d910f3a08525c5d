"""Rank correlation between TNS and performance over runs (Fig. 7)."""
import math
import re
from collections.abc import Iterable
from typing import Literal

import numpy as np

from .runs import Run

#: Names of ours -> functions of scipy.stats.
STATISTICS = dict(kendall='kendalltau', spearman='spearmanr')
#: From more runs on the table of all pairs is slower than scipy, and soon more
#: than the memory holds.
PAIRS = 256
#: Of differences within a method, so that equal values stay equal.
DIGITS = 9


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
            'name the right records with --definition or --record (logged '
            'scalars do not say theirs)')
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
    rng = np.random.default_rng(seed)
    values = _resampled(x, y, (rng.integers(len(x), size=len(x))
                               for _ in range(resamples)))
    found = {}
    for name, key in STATISTICS.items():
        value, p = getattr(stats, key)(x, y)
        found[name] = dict(statistic=float(value), p=float(p),
                           **_interval(values, name, confidence))
    return found


def correlate_within(runs: list[Run], resamples: int = 2000, seed: int = 0,
                     confidence: float = .95) -> dict[str, dict]:
    """As :func:`correlate`, of what differs between a method's seeds.

    TNS and the metric are taken relative to the means of the run's method,
    and pooled; methods with one run say nothing and are left out. p is the
    share of permutations of the metric within methods with a statistic as far
    from 0; the interval is of a bootstrap over methods, as the runs of a
    centred method depend on each other.

    Args:
        runs (list[Run]): of at least three methods with several runs.
        resamples (int): of the bootstrap, and permutations.
        seed (int): of both.
        confidence (float): of the intervals.

    Returns:
        dict: as :func:`correlate`.
    """
    groups = [own for own in by_method(runs) if len(own) > 1]
    x, y = (np.concatenate([_centred(own, key) for own in groups])
            for key in ('tns', 'metric'))
    ends = np.cumsum([len(own) for own in groups])
    parts = np.split(np.arange(len(x)), ends[:-1])
    rng = np.random.default_rng(seed)
    values = _resampled(x, y, (
        np.concatenate([parts[i] for i in rng.integers(
            len(parts), size=len(parts))]) for _ in range(resamples)))
    permuted = [
        rank_correlations(x, y[np.concatenate(
            [rng.permutation(part) for part in parts])])
        for _ in range(resamples)
    ]
    found = {}
    for name, value in rank_correlations(x, y).items():
        # Sums of signs are exact, their quotient is not.
        as_far = sum(abs(p[name]) > abs(value) - 1e-9 for p in permuted)
        found[name] = dict(statistic=value, p=(1 + as_far) / (1 + resamples),
                           **_interval(values, name, confidence))
    return found


def rank_correlations(x: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Both :data:`STATISTICS`; of few, as cosines of signs of differences.

    Args:
        x (ndarray): (n,), not all equal.
        y (ndarray): likewise.
    """
    if len(x) > PAIRS:
        from scipy import stats
        return {name: float(getattr(stats, key)(x, y)[0])
                for name, key in STATISTICS.items()}
    a, b = (np.sign(v[:, None] - v) for v in (x, y))
    # A row's sum is 2 · rank - n - 1, where equal values share a rank.
    return dict(kendall=_cosine(a, b), spearman=_cosine(a.sum(1), b.sum(1)))


def by_method(runs: list[Run]) -> list[list[Run]]:
    """The runs of each method, in the order of their first."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(method_of(run['name']), []).append(run)
    return list(groups.values())


def group_means(runs: list[Run]) -> list[Run]:
    """The mean of each method's seeds; empty if no method has several."""
    groups = by_method(runs)
    if len(groups) == len(runs):
        return []
    return [mean_run(own) for own in groups]


def mean_run(own: list[Run]) -> Run:
    """The mean of one method's seeds."""
    return Run(
        name=method_of(own[0]['name']),
        definition=own[0]['definition'],
        source='seeds',
        tns=float(np.mean([run['tns'] for run in own])),
        metric=float(np.mean([run['metric'] for run in own])))


def _check_values(key: str, values: list[tuple[str, float]]) -> None:
    for name, value in values:
        if not math.isfinite(value):
            raise ValueError(
                f'{name}: expected a finite {key}, got {value}')
    if len({value for _, value in values}) == 1:
        raise ValueError(
            f'{key}: expected different values, which can be ranked, got '
            f'{values[0][1]} in all {len(values)} runs')


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))


def _centred(runs: list[Run], key: Literal['tns', 'metric']) -> np.ndarray:
    values = np.array([run[key] for run in runs])
    return np.round(values - values.mean(), DIGITS)


def _resampled(x: np.ndarray, y: np.ndarray,
               draws: Iterable[np.ndarray]) -> list[dict[str, float]]:
    """Correlations of resampled runs.

    A resample without two different values has no correlation; these are
    left out.
    """
    return [
        rank_correlations(x[i], y[i]) for i in draws
        if np.ptp(x[i]) and np.ptp(y[i])
    ]


def _interval(found: list[dict[str, float]], name: str,
              confidence: float) -> dict:
    """Percentile interval."""
    tail = 50 * (1 - confidence)
    low, high = np.percentile([v[name] for v in found], [tail, 100 - tail])
    return dict(low=float(low), high=float(high), used=len(found))
