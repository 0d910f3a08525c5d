"""TNS of each method with intervals (Fig. 8)."""
from collections.abc import Callable
from functools import partial
from typing import TypedDict

import numpy as np

from ..stiffness import StiffnessRecord, labels
from .correlation import method_of

#: What is estimated over samples, by its key in ``summarize_tns``.
ESTIMATED: dict[str, Callable] = dict(
    tns=np.mean, tns_median=np.median, tns_q95=partial(np.quantile, q=.95))
#: Resamples at a time: of 10^5 samples they take 80 MB.
BATCH = 100
#: Of fewer seeds an interval is their range, as a bootstrap gives no more.
FEW_SEEDS = 5


class Estimate(TypedDict):
    """A number and the interval around it."""
    value: float
    low: float
    high: float
    seeds: list[float]  # the value of each, where there are several


class MethodTNS(TypedDict):
    """TNS of one method."""
    name: str
    seeds: int  # how many records it has
    estimates: dict[str, Estimate]  # by the keys of ``summarize_tns``;
    # their means over seeds where there are several


def tns_by_method(records: list[StiffnessRecord], resamples: int = 1000,
                  seed: int = 0, confidence: float = .95) -> list[MethodTNS]:
    """TNS of each method, its median and 95 % quantile, with intervals.

    These are bootstrap intervals over samples, or over seeds where a method
    has several; of fewer than five seeds they are the seeds' range.

    Args:
        records (list[StiffnessRecord]): each with a finite sample.
        resamples (int): of the bootstrap.
        seed (int): of the bootstrap.
        confidence (float): of the percentile intervals.

    Returns:
        list[MethodTNS]: a row for each of :func:`group_seeds`.
    """
    estimate = partial(_estimate, resamples, seed, confidence)
    return [_of_method(name, own, estimate)
            for name, own in group_seeds(records).items()]


def group_seeds(
        records: list[StiffnessRecord]) -> dict[str, list[StiffnessRecord]]:
    """Records by method; seeds of one differ in their ``_seedN`` alone.

    Records of one and the same name are not seeds of each other: each is a
    method of its own, numbered as :func:`.labels` does. So is a record
    without ``_seedN`` beside such ones, whose method is ``NAME_seed*`` then.

    Returns:
        dict[str, list[StiffnessRecord]]: in the order in which methods come
        first.
    """
    groups: dict[str, list[StiffnessRecord]] = {}
    names = labels(records)
    for name, record in zip(names, records):
        method = method_of(name)
        if method != name and method in names:
            method += '_seed*'
        groups.setdefault(method, []).append(record)
    return groups


def _of_method(name: str, own: list[StiffnessRecord],
               estimate: Callable[..., Estimate]) -> MethodTNS:
    if len(own) == 1:
        tns = own[0].tns().numpy()
        found = {key: estimate(tns, statistic)
                 for key, statistic in ESTIMATED.items()}
    else:
        rows = [record.tns_summary() for record in own]
        found = {key: _of_seeds([row[key] for row in rows], estimate)
                 for key in ESTIMATED}
    return MethodTNS(name=name, seeds=len(own), estimates=found)


def _of_seeds(values: list[float],
              estimate: Callable[..., Estimate]) -> Estimate:
    """The mean over seeds."""
    found = estimate(np.array(values), np.mean)
    found['seeds'] = values
    if len(values) < FEW_SEEDS:
        found['low'], found['high'] = min(values), max(values)
    return found


def _estimate(resamples: int, seed: int, confidence: float,
              values: np.ndarray, statistic: Callable) -> Estimate:
    """A statistic of values, and its percentile interval."""
    value = low = high = float(statistic(values))
    if len(values) > 1:
        from scipy import stats
        low, high = stats.bootstrap(
            (values,), statistic, n_resamples=resamples, batch=BATCH,
            vectorized=True, axis=-1, confidence_level=confidence,
            method='percentile',
            rng=np.random.default_rng(seed)).confidence_interval
    return Estimate(value=value, low=float(low), high=float(high), seeds=[])
