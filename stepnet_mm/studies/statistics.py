"""Means, differences and correlations of a study's records."""
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ..analysis.correlation import (
    DIGITS,
    by_method,
    correlate,
    correlate_within,
    mean_run,
)
from ..analysis.runs import PREFIX, Run
from .records import StudyRecord

#: Of a measurement, what a run is described by, and what it is called.
MEASURES = dict(tns='mean TNS', tns_median='median TNS', nsi='mean NSI')
#: Fewer points have no correlation worth a number.
LEAST = 3
CONFIDENCE = .95

Accuracy = Literal['last', 'best']


@dataclass(frozen=True)
class Spread:
    """Of a number over runs or seeds.

    Attributes:
        n (int): how many.
        mean (float | None): None without one.
        sd (float | None): standard deviation with n - 1; None below two.
    """
    n: int
    mean: float | None = None
    sd: float | None = None


@dataclass(frozen=True)
class Difference:
    """A mean difference over seeds, such as that of two methods.

    Attributes:
        n (int): how many seeds.
        mean (float | None): None without a seed.
        low (float | None): Student's t interval; None below two seeds.
        high (float | None): likewise.
        across (int): how many of the seeds have no machine that ran both.
    """
    n: int
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    across: int = 0


def spread(values: Iterable[float]) -> Spread:
    """Mean and standard deviation, as far as there are values."""
    found = np.array(list(values), float)
    if not len(found):
        return Spread(0)
    return Spread(len(found), float(found.mean()),
                  float(found.std(ddof=1)) if len(found) > 1 else None)


def runs_of_method(records: list[StudyRecord],
                   method: str) -> list[StudyRecord]:
    """The runs of a method that did not diverge, by seed."""
    own = [r for r in records if r.method == method and not r.diverged]
    return sorted(own, key=lambda record: (record.seed, record.made_on))


def accuracies(records: list[StudyRecord], method: str,
               key: Accuracy = 'last') -> dict[tuple[int, str], float]:
    """Seed and machine -> the metric of the last or the best epoch."""
    values = {(r.seed, r.made_on): getattr(r, key)
              for r in runs_of_method(records, method)}
    return {run: v for run, v in values.items() if v is not None}


def measured(record: StudyRecord, definition: str,
             measure: str) -> float | None:
    """One of :data:`MEASURES`; None where it was not measured."""
    return record.stiffness.get(definition, {}).get(measure)


def paired_difference(records: list[StudyRecord], method: str, other: str,
                      key: Accuracy = 'last',
                      confidence: float = CONFIDENCE) -> Difference:
    """A method less another one, over the seeds that both have.

    Of a seed it is the difference on one machine, the mean where several ran
    both. Machines round differently; where none ran both, it is the
    difference of the means over machines.

    Args:
        records (list[StudyRecord]): of both, and of any others.
        method (str): a method.
        other (str): the one to compare with.
        key (str): ``'last'`` or ``'best'``.
        confidence (float): of the interval.
    """
    ours, theirs = (accuracies(records, name, key)
                    for name in (method, other))
    same = [(run[0], value - theirs[run]) for run, value in ours.items()
            if run in theirs]
    mean, other_mean = (_mean_by_seed((seed, value) for (seed, _), value
                                      in values.items())
                        for values in (ours, theirs))
    alone = mean.keys() & other_mean.keys() - {seed for seed, _ in same}
    across = [(seed, mean[seed] - other_mean[seed]) for seed in alone]
    return replace(mean_difference(same + across, confidence),
                   across=len(across))


def mean_difference(differences: Iterable[tuple[int, float]],
                    confidence: float = CONFIDENCE) -> Difference:
    """The mean of differences over seeds, with its interval.

    Differences of one seed, on several machines, begin with the same weights
    and order of images. They are not independent and count as one, their
    mean.

    Args:
        differences (iterable[tuple[int, float]]): the seed of each, and it.
        confidence (float): of the interval.
    """
    found = spread(_mean_by_seed(differences).values())
    if found.mean is None or found.sd is None:
        return Difference(found.n, found.mean)
    half = t_factor(found.n, confidence) * found.sd
    return Difference(
        found.n, found.mean, found.mean - half, found.mean + half)


def t_factor(n: int, confidence: float = CONFIDENCE) -> float:
    """Half of a mean's interval over n values, in standard deviations."""
    from scipy import stats
    return float(stats.t.ppf((1 + confidence) / 2, n - 1) / np.sqrt(n))


def correlations(records: list[StudyRecord], definition: str,
                 measure: str) -> dict[str, dict[str, dict] | str]:
    """Of a measure with the accuracy after the last epoch, in three scopes.

    Args:
        records (list[StudyRecord]): of a study.
        definition (str): of NSI.
        measure (str): one of :data:`MEASURES`.

    Returns:
        dict: for ``'runs'``, ``'methods'`` (their means) and ``'within'``
        (between the seeds of a method, see
        :func:`~stepnet_mm.analysis.correlate_within`) what
        :func:`~stepnet_mm.analysis.correlate` gives, or why there is nothing.
    """
    methods = by_method(_as_runs(records, definition, measure))
    several = [own for own in methods if len(own) > 1]
    return dict(
        runs=over_runs(records, definition, measure),
        methods=_correlation([mean_run(own) for own in methods], 'methods'),
        within=_too_few(len(several), 'methods with several seeds')
        or _unranked(several, 10**-DIGITS)
        or correlate_within(sum(several, [])))


def over_runs(records: list[StudyRecord], definition: str,
              measure: str) -> dict[str, dict] | str:
    """The first of the scopes of :func:`correlations`."""
    return _correlation(_as_runs(records, definition, measure), 'runs')


def along_epochs(records: list[StudyRecord], measure: str) -> dict | str:
    """Kendall's tau of a measure with the accuracy over a run's epochs.

    What TNSMetric logged after each epoch is taken, in its definition.

    Args:
        records (list[StudyRecord]): of a study.
        measure (str): one of :data:`MEASURES`.

    Returns:
        dict | str: ``statistic``, the mean over the runs that have one; its
        t interval from ``low`` to ``high``; ``p`` of a sign test over runs;
        ``used``, how many runs. A text where there are fewer than three.
    """
    from scipy import stats
    taus = [tau for record in records
            if (tau := _tau_of_run(record, measure)) is not None]
    if len(taus) < LEAST:
        return _too_few(len(taus), 'runs')
    mean, half = np.mean(taus), t_factor(len(taus)) * np.std(taus, ddof=1)
    positive, signed = sum(t > 0 for t in taus), sum(t != 0 for t in taus)
    return dict(
        statistic=float(mean),
        low=float(max(mean - half, -1)),
        high=float(min(mean + half, 1)),
        p=float(stats.binomtest(positive, signed).pvalue) if signed else 1.,
        used=len(taus))


def trained_epochs(record: StudyRecord) -> int:
    """How many epochs a run has.

    Some records also have entries of TNSHook, which are of iterations.
    """
    return sum('loss' in epoch or record.metric in epoch
               for epoch in record.epochs)


def by_epoch(record: StudyRecord, key: str) -> dict[int, float]:
    """Epoch -> what was evaluated after it, where it was."""
    return {
        epoch['epoch']: epoch[key] for epoch in record.epochs
        if epoch.get(key) is not None
    }


def logged(record: StudyRecord, measure: str) -> dict[int, float]:
    """Epoch -> one of :data:`MEASURES`, as TNSMetric logged it."""
    if measure != 'nsi':
        return by_epoch(record, PREFIX + measure)
    return {
        number: float(np.mean(values)) for number, values in (
            (epoch['epoch'], [v for k, v in epoch.items()
                              if k.startswith(f'{PREFIX}nsi/')])
            for epoch in record.epochs) if values and None not in values
    }


def _mean_by_seed(values: Iterable[tuple[int, float]]) -> dict[int, float]:
    by_seed: dict[int, list[float]] = {}
    for seed, value in values:
        by_seed.setdefault(seed, []).append(value)
    return {seed: float(np.mean(own)) for seed, own in by_seed.items()}


def _tau_of_run(record: StudyRecord, measure: str) -> float | None:
    from scipy import stats
    x, y = logged(record, measure), by_epoch(record, record.metric)
    common = sorted(set(x) & set(y))
    if len(common) < LEAST:
        return None
    tau = stats.kendalltau([x[e] for e in common], [y[e] for e in common])[0]
    return None if np.isnan(tau) else float(tau)


def _as_runs(records: list[StudyRecord], definition: str,
             measure: str) -> list[Run]:
    return [
        Run(name=f'{r.method}_seed{r.seed}', tns=value, metric=r.last,
            source=r.study, definition=definition) for r in records
        if r.last is not None
        and (value := measured(r, definition, measure)) is not None
    ]


def _correlation(runs: list[Run], what: str) -> dict[str, dict] | str:
    return (_too_few(len(runs), what) or _unranked([runs])
            or correlate(runs))


def _too_few(count: int, what: str) -> str:
    """Says so; empty if they are enough."""
    return '' if count >= LEAST else f'needs {LEAST} {what}, has {count}'


def _unranked(groups: list[list[Run]], differ: float = 0.) -> str:
    """Says so if TNS or the metric has one value in every group."""
    equal = any(
        all(np.ptp([run[key] for run in own]) <= differ for own in groups)
        for key in ('tns', 'metric'))
    return 'equal values' if equal else ''
