"""Figures that plot.py alone draws: TNS by network, step over NSI (8, 9)."""
import re
from functools import partial
from textwrap import fill
from typing import NamedTuple

import numpy as np

from stepnet_mm.stiffness import StiffnessRecord, labels
from stepnet_mm.visualization import check_records, style
from stepnet_mm.visualization.stiffness_figures import nonfinite_note

#: Panels of Fig. 8, by the keys of ``summarize_tns``: label and what is
#: estimated over samples.
PANELS = dict(tns=('mean', np.mean), tns_median=('median', np.median),
              tns_q95=('95 % quantile', partial(np.quantile, q=.95)))
#: Of the bootstrap; of 10^5 samples a batch of them takes 80 MB.
RESAMPLES, BATCH = 1000, 100
#: Relative spread up to which numbers count as equal: a float32 mean of equal
#: numbers is off by about 1e-7.
EQUAL = 1e-6


def method_of(name):
    """The name of a run without its ``_seedN``."""
    return re.sub(r'_seed\d+$', '', name)


class Estimate(NamedTuple):
    """A number and an interval around it."""
    value: float
    low: float
    high: float
    seeds: list[float]  # whose mean the value is; empty for one record


def tns_by_method(records: list[StiffnessRecord]) -> dict:
    """TNS of each method, its median and 95 % quantile, with intervals.

    Records whose names differ in their ``_seedN`` alone are seeds of one
    method, whose interval is their range; of one and the same name they are
    numbered (:func:`.labels`). Without seeds it is a bootstrap over samples.

    Returns:
        dict: method -> key of :data:`PANELS` -> Estimate.
    """
    groups: dict[str, list[StiffnessRecord]] = {}
    for name, record in zip(labels(records), records):
        groups.setdefault(method_of(name), []).append(record)
    return {name: {key: _estimate(own, key) for key in PANELS}
            for name, own in groups.items()}


def _estimate(records: list[StiffnessRecord], key: str) -> Estimate:
    """A statistic of TNS of one method, and its interval."""
    seeds = [record.tns_summary()[key] for record in records]
    if len(records) > 1:
        return Estimate(float(np.mean(seeds)), min(seeds), max(seeds), seeds)
    tns, statistic = records[0].tns().numpy(), PANELS[key][1]
    low = high = value = statistic(tns)
    if len(tns) > 1:
        from scipy import stats
        low, high = stats.bootstrap(
            (tns, ), statistic, n_resamples=RESAMPLES, batch=BATCH,
            confidence_level=.95, method='percentile',
            rng=np.random.default_rng(0)).confidence_interval
    return Estimate(value, low, high, [])


@style.styled
def tns_figure(records: list):
    """TNS by network or trick, with intervals (Fig. 8).

    Each network of :func:`tns_by_method` is a row, with its seeds; panels are
    mean, median and 95 % quantile.

    Raises:
        ValueError: on records that do not go together.
    """
    check_records(records)
    methods = tns_by_method(records)
    figure = style.new_figure(style.WIDTH, 2.1 + .36 * len(methods))
    panels = figure.subplots(1, len(PANELS), sharey=True)
    for axes, (key, (label, _)) in zip(panels, PANELS.items()):
        for y, own in enumerate(methods.values()):
            value, low, high, seeds = own[key]
            axes.plot([low, high], [y, y], color=style.INK)
            axes.plot(value, y, marker='o', color=style.INK)
            axes.plot(seeds, [y] * len(seeds), '.', color=style.INK,
                      markersize=4, markerfacecolor=style.PAPER)
        axes.locator_params(axis='x', nbins=4)
        style.set_scale(axes, 'x', *axes.dataLim.intervalx)
        axes.set_xlabel(f'{label} of samples')
    panels[0].set_yticks(range(len(methods)), [
        fill(f'{name} ({seeds} seeds)' if (seeds := len(own['tns'].seeds))
             else name, 26) for name, own in methods.items()])
    panels[0].set_ylim(len(methods) - .5, -.5)
    figure.suptitle('TNS (Eq. 5) and 95 % bootstrap intervals over samples;\n'
                    'of several seeds (small dots) their range'
                    + nonfinite_note(records))
    return figure


def has_steps(record: StiffnessRecord) -> bool:
    """Whether a record has step sizes for :func:`step_figure`."""
    return bool(record.step.isfinite().any())


@style.styled
def step_figure(record: StiffnessRecord):
    """Mean step size Δt against NSI, a point per sample (Fig. 9).

    The panels are the first, the middle and the last block with a gate.

    Raises:
        ValueError: if no block has a gate, or no sample is finite.
    """
    check_records([record])
    if not has_steps(record):
        raise ValueError(
            f'{record.name}: expected the record of a model with step sizes, '
            'such as StepNet or SE, got no block with a known gate')
    nsi, step = record.nsi.numpy(), record.step.numpy()
    gated = np.flatnonzero(np.isfinite(step).any(0))
    finite = np.isfinite(nsi).all(1) & np.isfinite(step[:, gated]).all(1)
    chosen = np.unique(gated[[0, len(gated) // 2, -1]])
    figure = style.new_figure(style.WIDTH, 3.4)
    panels = figure.subplots(1, len(chosen), squeeze=False)[0]
    for axes, column in zip(panels, chosen):
        _scatter(axes, record.header.blocks[column], nsi[finite, column],
                 step[finite, column])
    figure.suptitle(f'{record.name}: mean step size Δt against NSI, '
                    f'{finite.sum()} samples{nonfinite_note([record])}')
    return figure


def _scatter(axes, name: str, nsi: np.ndarray, step: np.ndarray) -> None:
    from scipy import stats
    # As one picture: a vector file of 10,000 points is slow to show.
    axes.scatter(nsi, step, s=3**2, alpha=.4, linewidth=0,
                 color=style.color(0), rasterized=True)
    note = 'no correlation: constant values'
    if all(np.ptp(v) > EQUAL * np.abs(v).max() for v in (nsi, step)):
        r, rho = (correlation(nsi, step).statistic
                  for correlation in (stats.pearsonr, stats.spearmanr))
        note = f'Pearson {r:+.2f}, Spearman {rho:+.2f}'
    axes.set(title=f'{name}\n{note}', xlabel='NSI (Eq. 4)',
             ylabel='mean step size Δt')
