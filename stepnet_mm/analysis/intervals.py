"""TNS of each method with bootstrap intervals (Fig. 8)."""
from collections.abc import Callable
from functools import partial
from typing import TypedDict

import numpy as np

from ..stiffness import StiffnessRecord
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

    Records whose names differ in their ``_seedN`` alone are one method. The
    bootstrap resamples its seeds where there are several, otherwise samples.

    Args:
        records (list[StiffnessRecord]): each with a finite sample.
        resamples (int): of the bootstrap.
        seed (int): of the bootstrap.
        confidence (float): of the percentile intervals.

    Returns:
        list[MethodTNS]: in the order in which methods come first.
    """
    groups: dict[str, list[StiffnessRecord]] = {}
    for record in records:
        groups.setdefault(method_of(record.name), []).append(record)
    estimate = partial(_estimate, resamples, seed, confidence)
    return [_of_method(name, own, estimate) for name, own in groups.items()]


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
