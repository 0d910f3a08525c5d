"""Figures of stiffness records that plot.py alone draws: Fig. 8 and 9."""
from functools import partial
from textwrap import fill
from typing import NamedTuple

import numpy as np
from work_dirs import method_of

from stepnet_mm.stiffness import StiffnessRecord, labels
from stepnet_mm.visualization import check_records, style
from stepnet_mm.visualization.stiffness_figures import lost_note

#: Panels of Fig. 8, by the keys of ``summarize_tns``: label and what is
#: estimated over samples.
PANELS = dict(tns=('mean', np.mean), tns_median=('median', np.median),
              tns_q95=('95 % quantile', partial(np.quantile, q=.95)))
#: Of the bootstrap; of 10^5 samples a batch of them takes 80 MB.
RESAMPLES, BATCH = 1000, 100
#: With fewer blocks a correlation along depth says nothing.
LEAST = 3
#: Relative spread up to which numbers count as equal: a float32 mean of equal
#: numbers is off by about 1e-7.
EQUAL = 1e-6


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
            vectorized=True, axis=-1, confidence_level=.95,
            method='percentile',
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
        _draw_estimates(axes, [own[key] for own in methods.values()])
        axes.set_xlabel(f'{label} of samples')
    panels[0].set_yticks(range(len(methods)), [
        fill(f'{name} ({seeds} seeds)' if (seeds := len(own['tns'].seeds))
             else name, 26) for name, own in methods.items()])
    panels[0].set_ylim(len(methods) - .5, -.5)
    figure.suptitle('TNS (Eq. 5) and 95 % bootstrap intervals over samples;\n'
                    'of several seeds (small dots) their range'
                    + lost_note(records))
    return figure


def _draw_estimates(axes, estimates: list[Estimate]) -> None:
    """Draw one number of all networks, a row each."""
    for y, (value, low, high, seeds) in enumerate(estimates):
        axes.plot([low, high], [y, y], color=style.INK)
        axes.plot(value, y, marker='o', color=style.INK)
        axes.plot(seeds, [y] * len(seeds), '.', color=style.INK,
                  markersize=4, markerfacecolor=style.PAPER)
    axes.locator_params(axis='x', nbins=4)
    style.set_scale(axes, 'x', *axes.dataLim.intervalx)


def has_steps(record: StiffnessRecord) -> bool:
    """Whether a record has step sizes for :func:`step_figure`."""
    return bool(record.step.isfinite().any())


@style.styled
def step_figure(record: StiffnessRecord):
    """Mean step size Δt against NSI (Fig. 9).

    a: a point per sample, in the first, the middle and the last block with a
    gate of one stage, the first that has three. b, below: for each sample,
    Pearson's r of NSI and Δt over all these blocks; left out if there is no
    such stage or r.

    Raises:
        ValueError: if no block has a gate, or no sample is finite.
    """
    check_records([record])
    nsi, step, along = _with_gates(record)
    chosen = np.unique([0, len(along) // 2, len(along) - 1])
    r = pearson(nsi, step)
    has_b = len(along) >= LEAST and bool(np.isfinite(r).any())
    figure = style.new_figure(style.WIDTH, 3.4 + 2.7 * has_b)
    grid = figure.add_gridspec(1 + has_b, len(chosen))
    for i, column in enumerate(chosen):
        _scatter(figure.add_subplot(grid[0, i]),
                 record.header.blocks[along[column]], nsi[:, column],
                 step[:, column])
    if has_b:
        stage = record.header.stage[along[0]]
        _histogram(figure.add_subplot(grid[1, :]),
                   f'stage {stage}, {len(along)} blocks', r)
    figure.suptitle(f'{record.name}: mean step size Δt against NSI, '
                    f'{len(nsi)} samples{lost_note([record])}')
    return figure


def _with_gates(record: StiffnessRecord) -> tuple:
    """NSI and Δt, (n, b), of the finite samples; the columns of b blocks."""
    if not has_steps(record):
        raise ValueError(
            f'{record.name}: expected the record of a model with step sizes, '
            'such as StepNet or SE, got no block with a known gate')
    nsi, step = record.nsi.numpy(), record.step.numpy()
    gated = np.flatnonzero(np.isfinite(step).any(0))
    finite = np.isfinite(nsi).all(1) & np.isfinite(step[:, gated]).all(1)
    stages = np.array(record.header.stage)[gated]
    found, counts = np.unique(stages, return_counts=True)
    along = gated[stages == found[np.argmax(counts >= LEAST)]]
    return nsi[finite][:, along], step[finite][:, along], along


def pearson(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Pearson's r along the last axis, (..., n) -> (...).

    It is NaN where x or y is constant up to rounding.
    """
    scaled = []
    for v in (x, y):
        constant = np.ptp(v, axis=-1) <= EQUAL * np.abs(v).max(-1)
        spread = np.where(constant, np.nan, v.std(-1))
        scaled.append((v - v.mean(-1, keepdims=True)) / spread[..., None])
    return (scaled[0] * scaled[1]).mean(-1)


def _scatter(axes, name: str, nsi: np.ndarray, step: np.ndarray) -> None:
    from scipy import stats
    # As one picture: a vector file of 10,000 points is slow to show.
    axes.scatter(nsi, step, s=3**2, alpha=.4, linewidth=0,
                 color=style.color(0), rasterized=True)
    r, note = float(pearson(nsi, step)), 'no correlation: constant values'
    if np.isfinite(r):
        rho = stats.spearmanr(nsi, step).statistic
        note = f'Pearson {r:+.2f}, Spearman {rho:+.2f}'
    axes.set(title=f'{name}\n{note}', xlabel='NSI (Eq. 4)',
             ylabel='mean step size Δt')


def _histogram(axes, name: str, r: np.ndarray) -> None:
    """The distribution of r over samples."""
    found = r[np.isfinite(r)]
    axes.hist(found, bins=np.linspace(-1, 1, 41), color=style.color(0))
    middle, lost = np.median(found), len(r) - len(found)
    axes.axvline(middle, color=style.color(1), linestyle='--')
    note = f' ({lost} with constant values left out)' if lost else ''
    axes.set(title=f'{name}: {len(found)} samples{note}, median (dashed) '
             f'{middle:+.2f}', ylabel='samples', xlim=(-1, 1),
             xlabel="Pearson's r of NSI and Δt along depth, by sample")
