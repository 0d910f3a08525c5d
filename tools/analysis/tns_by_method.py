"""TNS of each network, with intervals (Fig. 8)."""
from collections.abc import Callable
from functools import partial
from textwrap import fill
from typing import NamedTuple

import numpy as np
from work_dirs import method_of

from stepnet_mm.stiffness import StiffnessRecord, labels
from stepnet_mm.visualization.stiffness_figures import (
    check_records,
    lost_note,
)
from stepnet_mm.visualization.style import (
    WIDTH,
    new_figure,
    points,
    set_scale,
    styled,
    theme,
)

#: A panel each, by the keys of ``summarize_tns``: label and what is estimated
#: over samples.
PANELS = dict(tns=('mean', np.mean), tns_median=('median', np.median),
              tns_q95=('95 % quantile', partial(np.quantile, q=.95)))
#: Of the bootstrap; of 10^5 samples a batch of them takes 80 MB.
RESAMPLES, BATCH = 1000, 100
#: Of fewer seeds an interval is their range, as a bootstrap gives no more.
FEW_SEEDS = 5


class Estimate(NamedTuple):
    """A number and the 95 % interval around it."""
    value: float
    low: float
    high: float
    seeds: list[float]  # the value of each, where there are several


def tns_by_method(
        records: list[StiffnessRecord]) -> dict[str, dict[str, Estimate]]:
    """TNS of each method, its median and 95 % quantile, with intervals.

    These are bootstrap intervals over samples, or over seeds where a method
    has several; of fewer than five seeds they are the seeds' range.

    Args:
        records (list[StiffnessRecord]): each with a finite sample.

    Returns:
        dict[str, dict[str, Estimate]]: for each of :func:`group_seeds` a
        number for each of :data:`PANELS`, the mean over seeds where there
        are several.
    """
    return {name: {
        key: _over_seeds([record.tns_summary()[key] for record in own])
        if len(own) > 1 else _estimate(own[0].tns().numpy(), statistic)
        for key, (_, statistic) in PANELS.items()}
            for name, own in group_seeds(records).items()}


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


def _over_seeds(values: list[float]) -> Estimate:
    if len(values) < FEW_SEEDS:
        return Estimate(float(np.mean(values)), min(values), max(values),
                        values)
    return _estimate(np.array(values), np.mean)._replace(seeds=values)


def _estimate(values: np.ndarray, statistic: Callable) -> Estimate:
    """A statistic of values, and its percentile interval."""
    value = low = high = float(statistic(values))
    if len(values) > 1:
        from scipy import stats
        low, high = map(float, stats.bootstrap(
            (values, ), statistic, n_resamples=RESAMPLES, batch=BATCH,
            vectorized=True, axis=-1, confidence_level=.95,
            method='percentile',
            rng=np.random.default_rng(0)).confidence_interval)
    return Estimate(value, low, high, [])


@styled
def tns_figure(records: list):
    """TNS by network or trick, with intervals (Fig. 8).

    Records whose names differ in their ``_seedN`` alone are one network. Its
    seeds are drawn too, and its interval is one over them, of fewer than five
    their range; otherwise it is one over samples.

    Args:
        records (list[StiffnessRecord]): of at least one network.

    Returns:
        matplotlib.figure.Figure: panels of mean, median and 95 % quantile.

    Raises:
        ValueError: on records that do not go together.
    """
    check_records(records)
    methods = tns_by_method(records)
    figure = new_figure(WIDTH, 2.1 + .36 * len(methods))
    panels = figure.subplots(1, len(PANELS), sharey=True)
    for axes, (key, (label, _)) in zip(panels, PANELS.items()):
        _draw(axes, [estimates[key] for estimates in methods.values()])
        axes.set_xlabel(f'{label} of samples')
    panels[0].set_yticks(range(len(methods)), [
        fill(f'{name} ({seeds} seeds)' if (seeds := len(own['tns'].seeds))
             else name, 26) for name, own in methods.items()])
    panels[0].set_ylim(len(methods) - .5, -.5)
    figure.suptitle(
        'TNS (Eq. 5) and 95 % bootstrap intervals over samples;\nof several '
        f'seeds (small dots) over seeds, of less than {FEW_SEEDS} their range'
        + lost_note(records))
    return figure


def _draw(axes, estimates: list[Estimate]) -> None:
    """Draw one number of all networks, a row each."""
    ink = theme().ink
    for y, (value, low, high, seeds) in enumerate(estimates):
        axes.plot([low, high], [y, y], color=ink)
        axes.plot(value, y, marker='o', color=ink)
        axes.plot(seeds, [y] * len(seeds), '.', color=ink,
                  markersize=points(4), markerfacecolor=theme().paper)
    axes.locator_params(axis='x', nbins=4)
    drawn = [number for own in estimates
             for number in (own.value, own.low, own.high, *own.seeds)]
    set_scale(axes, 'x', min(drawn), max(drawn))
