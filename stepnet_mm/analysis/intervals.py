"""TNS of each method with bootstrap intervals (Fig. 8)."""
from collections.abc import Callable
from functools import partial
from typing import TypedDict

import numpy as np

from ..stiffness import StiffnessRecord, labels
from .correlation import method_of


class Estimate(TypedDict):
    """A number and the interval around it."""
    value: float
    low: float
    high: float


class MethodTNS(TypedDict):
    """TNS of one method."""
    name: str
    seeds: int  # how many records it has
    mean: Estimate  # of samples (Eq. 5), and of seeds where there are several
    median: Estimate  # of samples, and its mean over several seeds


def tns_by_method(records: list[StiffnessRecord], resamples: int = 1000,
                  seed: int = 0, confidence: float = .95) -> list[MethodTNS]:
    """TNS of each method, its median, and bootstrap intervals of both.

    The bootstrap resamples a method's seeds where there are several,
    otherwise samples.

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
        mean, median = estimate(tns, np.mean), estimate(tns, np.median)
    else:
        rows = [record.tns_summary() for record in own]
        mean, median = (
            estimate(np.array([row[key] for row in rows]), np.mean)
            for key in ('tns', 'tns_median'))
    return MethodTNS(name=name, seeds=len(own), mean=mean, median=median)


def _estimate(resamples: int, seed: int, confidence: float,
              values: np.ndarray, statistic: Callable) -> Estimate:
    """A statistic of values, and its percentile interval."""
    rng, n = np.random.default_rng(seed), len(values)
    drawn = [statistic(values[rng.integers(n, size=n)])
             for _ in range(resamples)]
    tail = (1 - confidence) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return Estimate(value=float(statistic(values)), low=float(low),
                    high=float(high))
