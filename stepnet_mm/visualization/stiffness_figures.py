"""Figures of NSI, TNS: survival, depth, proportion, seeds, over training.

Those of stiffness records leave out and count the samples with an inf or NaN.
"""
import re
from textwrap import fill

import numpy as np
from matplotlib.colors import PowerNorm
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from ..stiffness import (
    StiffnessRecord,
    labels,
    stage_summary,
    stiffness_proportion,
    stiffness_survival,
)
from .style import (
    INK,
    PAPER,
    legend_below,
    legend_beside,
    look,
    looks,
    new_figure,
    panel_grid,
    set_scale,
    styled,
)

#: Median, and the edges of the outer and of the inner band.
QUANTILES = (.5, .1, .9, .25, .75)
#: TNS over samples, each with its look.
TNS = dict(tns='mean', tns_median='median', tns_q95='95 % quantile')


def check_records(records: list[StiffnessRecord]) -> None:
    """Refuse records that one figure or report cannot show.

    Raises:
        ValueError: without records, with records of different definitions,
            or with one that has no finite sample.
    """
    if not records:
        raise ValueError(
            'records: expected at least one stiffness record, got none')
    definitions = {r.header.definition: r.name for r in records}
    if len(definitions) > 1:
        raise ValueError(
            'records: expected one definition of NSI, got (with a record of '
            f'each): {definitions}; measure all with one --definition')
    for record in records:
        if not record.finite.any():
            raise ValueError(
                f'{record.name}: expected a sample with a finite NSI '
                f'everywhere, got none in {len(record.nsi)}; leave it out')


def nonfinite_note(records: list[StiffnessRecord]) -> str:
    """A line about the samples that are left out; empty if none is."""
    parts = []
    for label, record in zip(labels(records), records):
        if record.nonfinite:
            name = f'{label}: ' if len(records) > 1 else ''
            parts.append(f'{name}{record.nonfinite} of {len(record.nsi)}')
    text = fill(f'not finite, left out: {", ".join(parts)}', 60)
    return f'\n{text}' if parts else ''


@styled
def survival_figure(records: list):
    """δ(M1, M2) of Eq. 5 as heat maps, TNS above each (Fig. 2).

    The thresholds reach to where δ is at most 1 % in all records.

    Args:
        records (list[StiffnessRecord]): a panel each, on the same axes.

    Returns:
        matplotlib.figure.Figure: the panels, side by side.

    Raises:
        ValueError: on records that do not go together.
    """
    check_records(records)
    m1, m2 = [np.linspace(0, top, 41) for top in _tops(records, .99)]
    figure, panels = panel_grid(len(records), 2.9, 3.1)
    for axes, label, record in zip(panels, labels(records), records):
        share = stiffness_survival(record.nsi, record.stage, m1, m2)
        image = axes.pcolormesh(m1, m2, 100 * share.numpy().T, vmin=0,
                                vmax=100, shading='gouraud')
        axes.set(xlabel='M1', ylabel='M2', title=_totals(label, record))
    figure.colorbar(
        image, ax=panels, label='δ(M1, M2), % of the samples', pad=.02)
    return figure


@styled
def proportion_figure(records: list):
    """p̂(M1, M2) of §3.1 as heat maps with one colour scale (Fig. 6).

    The thresholds are round numbers up to where δ is at most 10 % in all
    records.

    Takes, returns and raises the same as :func:`survival_figure`.
    """
    check_records(records)
    m1, m2 = map(_round_numbers, _tops(records, .9))
    tables = [100 * stiffness_proportion(r.nsi, r.stage, m1, m2).numpy()
              for r in records]
    figure, panels = panel_grid(len(records), 2.9, 3.1)
    # Most of p̂ is small; a linear scale would show it as one colour.
    norm = PowerNorm(.5, 0, max(table.max() for table in tables) or 1.)
    for axes, label, record, table in zip(panels, labels(records), records,
                                          tables):
        image = _heat_map(axes, m1, m2, table, norm)
        axes.set_title(_totals(label, record))
    figure.colorbar(
        image, ax=panels, label='p̂(M1, M2), % of the blocks', pad=.02)
    return figure


@styled
def depth_figure(records: list):
    """NSI along depth, its median and bands over samples (Fig. 3).

    A panel per stage, a colour per record; their blocks may differ. Takes,
    returns and raises the same as :func:`survival_figure`.
    """
    return _along_depth(
        records, QUANTILES,
        'NSI along depth: median, 25–75 % and 10–90 % of samples')


@styled
def seeds_figure(records: list):
    """NSI along depth of several seeds of one model, medians (Fig. 10).

    As :func:`depth_figure`, without bands.
    """
    return _along_depth(
        records, QUANTILES[:1],
        f'NSI along depth of {len(records)} seeds: median of samples')


@styled
def training_figure(curve: list[dict]):
    """Draw TNS, and below it the NSI of each stage, over the iterations.

    TNS is drawn as its mean, median and 95 % quantile over samples. The band
    of a stage reaches from its mean to its maximum.

    Args:
        curve (list[dict]): one dict a measurement.

    Returns:
        matplotlib.figure.Figure: two panels.
    """
    figure = new_figure(8, 5.6)
    upper, lower = figure.subplots(2, 1, sharex=True)
    _draw_tns(upper, curve)
    _draw_nsi(lower, curve)
    upper.set_title('Neural stiffness while training')
    lower.set_xlabel('iteration')
    for axes in (upper, lower):
        if axes.lines:
            legend_beside(axes)
    return figure


def _tops(records: list, quantile: float) -> list[float]:
    """The largest M1 and M2 to draw, just past a quantile over samples."""
    tops = []
    for record in records:
        _, mean, maximum, finite = stage_summary(record.nsi, record.stage)
        mean, maximum = mean[finite], maximum[finite]
        excess = (maximum / mean - 1).nan_to_num(0.)  # a stage of zeros
        tops.append([1.05 * np.quantile(v.amax(1), quantile, method='higher')
                     for v in (excess, maximum)])
    # Stages of one block each reach M1 = 0 alone.
    return [top or 1. for top in np.max(tops, 0)]


def _round_numbers(top: float) -> np.ndarray:
    """Some six from 0 to past the top, as a reader would choose them."""
    locator = MaxNLocator(6, steps=[1, 2, 5, 10])
    return np.asarray(locator.tick_values(0, top))


def _totals(label: str, record: StiffnessRecord) -> str:
    mean, median, high = record.tns_summary().values()
    return (f'{fill(label, 28)}\n'
            f'TNS {mean:.3g}, median {median:.3g}\n95 % quantile {high:.3g}'
            f'{nonfinite_note([record])}')


def _heat_map(axes, m1, m2, table: np.ndarray, norm):
    """Draw (len(m1), len(m2)) percents, each with its value."""
    image = axes.imshow(table.T, origin='lower', aspect='auto', norm=norm)
    for place, value in np.ndenumerate(table):
        axes.text(*place, _percent(value), ha='center', va='center',
                  fontsize='small', color=PAPER if norm(value) > .55 else INK)
    axes.set_xticks(range(len(m1)), [f'{value:.3g}' for value in m1])
    axes.set_yticks(range(len(m2)), [f'{value:.3g}' for value in m2])
    axes.set(xlabel='M1', ylabel='M2')
    axes.grid(False)
    return image


def _percent(value: float) -> str:
    if 0 < value < .1:
        return '<0.1'
    return f'{value:.0f}' if value == 0 or value >= 10 else f'{value:.1f}'


def _along_depth(records: list, quantiles: tuple, heading: str):
    """A line a record, the first quantile; each further pair is a band."""
    check_records(records)
    tables = [np.quantile(record.finite_nsi.numpy(), quantiles, axis=0)
              for record in records]
    figure, panels = _stage_panels(records, tables)
    names = labels(records)
    styles = looks(names)
    for record, table, own in zip(records, tables, styles):
        for axes, places, (middle, *edges) in _by_stage(panels, record, table):
            axes.plot(places, middle, marker='o', markersize=3, **own)
            for low, high, alpha in zip(edges[::2], edges[1::2], (.12, .2)):
                _band(axes, places, low, high, color=own['color'],
                      alpha=alpha, linewidth=0)
    legend_below(figure, [Line2D([], [], label=name, **own)
                          for name, own in zip(names, styles)])
    figure.suptitle(heading + nonfinite_note(records))
    return figure


def _stage_panels(records: list, tables: list) -> tuple:
    """A figure and its axes by stage, as wide as the stages are deep.

    A block's index is its position in the stage, from 0, as in step_blocks;
    0 itself is never measured.
    """
    places: dict[int, set[int]] = {}
    for record in records:
        for stage, place in zip(record.header.stage, record.header.position):
            places.setdefault(stage, set()).add(place)
    stages = sorted(places)
    # A stage of one block needs room for its heading too.
    widths = [max(places[s]) - min(places[s]) + 4 for s in stages]
    figure = new_figure(max(.22 * sum(widths), 6.5), 4.2)
    row = figure.subplots(
        1, len(stages), sharey=True, squeeze=False, width_ratios=widths)[0]
    for axes, stage in zip(row, stages):
        first, last = min(places[stage]), max(places[stage])
        axes.set(title=f'stage {stage}', xlabel='block index',
                 xlim=(first - .7, last + .7),
                 xticks=range(first, last + 1, (last - first) // 9 + 1))
    row[0].set_ylabel('NSI (Eq. 4)')
    set_scale(row[0], 'y', min(table.min() for table in tables),
              max(table.max() for table in tables))
    return figure, dict(zip(stages, row))


def _by_stage(panels: dict, record: StiffnessRecord, table: np.ndarray):
    """Axes, block indices and columns of a (Q, L) table, stage by stage."""
    stage = np.array(record.header.stage)
    for s in np.unique(stage):
        yield (panels[s], np.array(record.header.position)[stage == s],
               table[:, stage == s])


def _band(axes, places, low, high, **options) -> None:
    """Fill between two lines; a single block gets some width."""
    if len(places) == 1:
        places = places + np.array([-.25, .25])
        low, high = np.repeat(low, 2), np.repeat(high, 2)
    axes.fill_between(places, low, high, **options)


def _draw_tns(axes, curve: list[dict]) -> None:
    highest = 0.
    for i, (key, label) in enumerate(TNS.items()):
        iterations, values = _series(curve, key)
        if values:
            axes.plot(iterations, values, label=label, **look(i),
                      **_dots(iterations))
            highest = max(highest, *values)
    axes.set(ylabel='TNS (Eq. 5)', ylim=(0, 1.08 * highest or 1.))


def _draw_nsi(axes, curve: list[dict]) -> None:
    keys = ' '.join(key for row in curve for key in row)
    for stage in sorted({*map(int, re.findall(r'nsi_stage(\d+)_mean', keys))}):
        iterations, mean = _series(curve, f'nsi_stage{stage}_mean')
        highest = _series(curve, f'nsi_stage{stage}_max')[1]
        style = look(stage - 1)
        axes.plot(iterations, mean, label=f'stage {stage}', **style,
                  **_dots(iterations))
        axes.fill_between(iterations, mean, highest, color=style['color'],
                          alpha=.15, linewidth=0)
    axes.set(ylabel='NSI (Eq. 4): mean to max.')
    axes.set_ylim(bottom=0)


def _dots(places: list) -> dict:
    """Markers where there are few places; one place has no line."""
    few = len(places) <= 40
    return dict(marker='o', markersize=3) if few else {}


def _series(curve: list[dict], key: str) -> tuple:
    """Iterations and values, where the key was measured."""
    rows = [(row['step'], row[key]) for row in curve if key in row]
    return tuple(map(list, zip(*rows))) if rows else ([], [])
