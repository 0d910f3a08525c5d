"""Figures of a study's records: accuracy, Fig. 7, curves, Δt, NSI."""
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from ..analysis.runs import PREFIX
from ..studies.records import StudyRecord
from ..studies.statistics import (
    accuracies,
    by_epoch,
    logged,
    measured,
    over_runs,
    runs_of_method,
)
from .style import (
    WIDTH,
    color,
    legend_below,
    look,
    mark,
    new_figure,
    panel_grid,
    points,
    save_figure,
    styled,
    theme,
)

#: In colour among more methods than these, where they are there.
MANY = 12
HIGHLIGHTED = ('plain', 'se', 'stepnet', 'constant')
#: Their means are lines in :func:`accuracy_figure`.
LINES = ('plain', 'constant')
#: As many have a range of their own.
FEW = 4
#: A wider range than this is drawn on a log scale.
WIDE = 8
#: Of what TNSMetric logs, the mean Δt of blocks.
STEP = f'{PREFIX}step/'


def write_figures(records: list[StudyRecord], methods: Sequence[str],
                  page: Path) -> dict[str, str]:
    """Write ``figures/PAGE_*.png`` beside a page.

    Args:
        records (list[StudyRecord]): of studies that compare.
        methods (sequence[str]): in the order of their colours.
        page (Path): the page, without its suffix.

    Returns:
        dict: caption -> link, relative to the page.
    """
    links = figure_links(records, methods, page)
    for caption, figure in study_figures(records, methods).values():
        save_figure(figure, page.parent / links[caption])
    return links


def figure_links(records: list[StudyRecord], methods: Sequence[str],
                 page: Path) -> dict[str, str]:
    """What :func:`write_figures` gives; nothing is drawn."""
    return {caption: f'figures/{page.name}_{name}.png' for name, (caption, _)
            in _drawings(records, methods).items()}


def study_figures(records: list[StudyRecord], methods: Sequence[str]) -> dict:
    """All figures that the records give.

    Args:
        records (list[StudyRecord]): of studies that compare.
        methods (sequence[str]): in the order of their colours.

    Returns:
        dict: name -> caption and matplotlib.figure.Figure.
    """
    return {name: (caption, draw()) for name, (caption, draw)
            in _drawings(records, methods).items()}


def _drawings(records: list[StudyRecord], methods: Sequence[str]
              ) -> dict[str, tuple[str, Callable]]:
    """Name -> caption of each figure that the records give, what draws it."""
    present = [m for m in methods if runs_of_method(records, m)]
    records = [r for r in records if r.method in present]
    if not records:
        return {}
    metric = _metric(records)
    found = dict(accuracy=(f'{metric} after the last epoch: a dot per run, a '
                           'bar at the mean', accuracy_figure))
    if any(r.stiffness for r in records):
        found['fig7'] = (f'{metric} over mean TNS by definition, as Fig. 7',
                         correlation_figure)
    if any(m['blocks'] for r in records for m in r.stiffness.values()):
        found['nsi'] = ('NSI by block, means over samples and runs',
                        nsi_figure)
    if any(r.epochs for r in records):
        found['curves'] = (f'{metric} and mean TNS by epoch, means over runs',
                           curves_figure)
    if any(map(_steps, records)):
        found['steps'] = ('Mean Δt by block and over epochs, means over '
                          'samples and runs', steps_figure)
    return {name: (caption, partial(draw, records, present))
            for name, (caption, draw) in found.items()}


@styled
def accuracy_figure(records: list[StudyRecord], methods: Sequence[str]):
    """The last epoch of every run, methods sorted by their mean.

    Args:
        records (list[StudyRecord]): some runs of each method, and any other.
        methods (sequence[str]): methods that have runs.

    Returns:
        matplotlib.figure.Figure: one panel, a row per method.
    """
    values = {m: list(accuracies(records, m).values()) for m in methods}
    ranked = sorted(methods, key=lambda m: np.mean(values[m]))
    figure = new_figure(7, max(2.4, 1.2 + .27 * len(methods)))
    axes = figure.subplots()
    far = _far_below([float(np.mean(values[m])) for m in ranked])
    for y, method in enumerate(ranked[far:], far):
        axes.plot(values[method], [y] * len(values[method]), 'o',
                  color=color(0), alpha=.6)
        axes.plot(np.mean(values[method]), y, '|', color=theme().ink,
                  markersize=points(13), markeredgewidth=points(2))
    for y, method in enumerate(ranked[:far]):
        axes.text(0, y, ' ← ' + ', '.join(
            f'{value:.2f}' for value in values[method]), va='center',
                  color=color(0), transform=axes.get_yaxis_transform(),
                  bbox=dict(facecolor=theme().paper, edgecolor='none', pad=1))
    for i, method in enumerate(m for m in LINES if m in ranked[far:]):
        axes.axvline(np.mean(values[method]), zorder=0, **look(i + 1),
                     label=f'mean of {method}')
    axes.set(xlabel=_metric(records), yticks=range(len(ranked)),
             yticklabels=ranked, ylim=(-.7, len(ranked) - .3))
    _legend_of(axes)
    return figure


def _far_below(means: Sequence[float]) -> int:
    """How many of some sorted means would squeeze the others.

    Those below a gap that is wider than what at least :data:`FEW` above it
    span.
    """
    return max((i for i in range(1, len(means) - FEW + 1)
                if means[i] - means[i - 1] > means[-1] - means[i]), default=0)


@styled
def correlation_figure(records: list[StudyRecord], methods: Sequence[str]):
    """Accuracy over mean TNS, a panel per definition (Fig. 7).

    Args:
        records (list[StudyRecord]): as for :func:`accuracy_figure`.
        methods (sequence[str]): likewise.

    Returns:
        matplotlib.figure.Figure: with tau and rho over all runs as titles.
    """
    names = list(dict.fromkeys(n for r in records for n in r.stiffness))
    figure, panels = panel_grid(len(names), 2.9, 4.2)
    _set_scale(panels, 'x', [[x for r in records
                              if (x := measured(r, name, 'tns'))]
                             for name in names])
    for axes, name in zip(panels, names):
        for i, method in enumerate(methods):
            points = [(x, r.last) for r in runs_of_method(records, method)
                      if (x := measured(r, name, 'tns')) is not None]
            axes.plot(*zip(*points) if points else ([], []), linestyle='',
                      alpha=.8, label=method, **mark(i))
        axes.set(xlabel='mean TNS (Eq. 5)', ylabel=_metric(records))
        axes.set_title(f'{name}\n{_correlation(records, name)}')
    _legend_of(panels[0])
    return figure


@styled
def curves_figure(records: list[StudyRecord], methods: Sequence[str]):
    """Accuracy and mean TNS by epoch, means over runs.

    Args:
        records (list[StudyRecord]): as for :func:`accuracy_figure`.
        methods (sequence[str]): likewise; of more than :data:`MANY` only
            :data:`HIGHLIGHTED` are in colour.

    Returns:
        matplotlib.figure.Figure: two panels.
    """
    figure, panels = panel_grid(2, 4.3, 4.)
    for axes, label, values in zip(
            panels, (_metric(records), 'mean TNS (Eq. 5), as logged'),
            (lambda r: by_epoch(r, r.metric), lambda r: logged(r, 'tns'))):
        _curves(axes, records, methods, values)
        axes.set_ylabel(label)
        _mark_epochs(axes)
    _set_scale(panels[1:], 'y', [[v for r in records
                                  for v in logged(r, 'tns').values()]])
    _legend_of(panels[0])
    return figure


@styled
def nsi_figure(records: list[StudyRecord], methods: Sequence[str]):
    """NSI by depth, a panel per definition.

    Args:
        records (list[StudyRecord]): as for :func:`accuracy_figure`.
        methods (sequence[str]): likewise; of more than :data:`MANY` only
            :data:`HIGHLIGHTED` are in colour.

    Returns:
        matplotlib.figure.Figure: a panel per definition.
    """
    names = list(dict.fromkeys(n for r in records for n in r.stiffness))
    figure, panels = panel_grid(len(names), 2.9, 3.6)
    for axes, name in zip(panels, names):
        _curves(axes, records, methods,
                partial(_by_block, definition=name, key='nsi'))
        axes.set(title=name, ylabel='mean NSI (Eq. 4)')
        _mark_stages(axes, records)
    _set_scale(panels, 'y', [[v for r in records
                              for v in _by_block(r, name, 'nsi').values()]
                             for name in names])
    _legend_of(panels[0])
    return figure


@styled
def steps_figure(records: list[StudyRecord], methods: Sequence[str]):
    """Mean Δt by depth after training, and by epoch in each stage.

    Args:
        records (list[StudyRecord]): as for :func:`accuracy_figure`.
        methods (sequence[str]): likewise; those without a known Δt are left
            out.

    Returns:
        matplotlib.figure.Figure: one panel, and one per stage below it where
        Δt was logged.
    """
    own = [m for m in methods
           if any(map(_steps, runs_of_method(records, m)))]
    stages = sorted({_stage(key) for r in records for epoch in r.epochs
                     for key in epoch if key.startswith(STEP)})
    figure = new_figure(WIDTH, 7.4 if stages else 4.4)
    grid = figure.add_gridspec(2 if stages else 1, max(len(stages), 1))
    upper = figure.add_subplot(grid[0, :])
    _curves(upper, records, own, _steps, in_color=own)
    upper.set(ylabel='mean Δt', title='after the last epoch')
    _mark_stages(upper, records)
    for i, stage in enumerate(stages):
        axes = figure.add_subplot(grid[1, i], sharey=upper)
        _curves(axes, records, own, partial(_logged_steps, stage=stage),
                in_color=own)
        axes.set(title=f'stage {stage}, mean over its blocks',
                 ylabel='mean Δt' if i == 0 else None)
        _mark_epochs(axes)
    _set_scale([upper], 'y', [[v for r in records
                               for v in _steps(r).values()]])
    _legend_of(upper)
    return figure


def _curves(axes, records: list[StudyRecord], methods: Sequence[str],
            values: Callable[[StudyRecord], dict],
            in_color: Sequence[str] = ()) -> None:
    """A line per method: ``values`` of a run -> its mean over seeds."""
    names = in_color or (HIGHLIGHTED if len(methods) > MANY else methods)
    colored = [method for method in names if method in methods]
    others = [method for method in methods if method not in colored]
    for method in others:
        axes.plot(*_mean_curve(records, method, values), alpha=.7,
                  color=theme().muted, linewidth=points(.9), marker='.',
                  markersize=points(3),
                  label='others' if method == others[0] else None)
    for method in colored:
        axes.plot(*_mean_curve(records, method, values), marker='.',
                  label=method, **look(names.index(method)),
                  zorder=3 if method in HIGHLIGHTED else 2)


def _mean_curve(records: list[StudyRecord], method: str,
                values: Callable[[StudyRecord], dict]) -> tuple:
    """x and y, where every run of the method has a value."""
    runs = [values(r) for r in runs_of_method(records, method)]
    common = sorted(set(runs[0]).intersection(*runs[1:])) if runs else []
    return common, [np.mean([run[x] for run in runs]) for x in common]


def _by_block(record: StudyRecord, definition: str, key: str) -> dict:
    """Number of a measured block, from 1 -> its value, if it has one."""
    blocks = record.stiffness.get(definition, {}).get('blocks', [])
    return {i: block[key] for i, block in enumerate(blocks, 1)
            if block[key] is not None}


def _steps(record: StudyRecord) -> dict:
    first = next(iter(record.stiffness), '')
    return _by_block(record, first, 'step')


def _logged_steps(record: StudyRecord, stage: int) -> dict:
    """Epoch -> mean Δt of a stage's blocks, as TNSMetric logged it."""
    found = {
        epoch['epoch']: [value for key, value in epoch.items()
                         if key.startswith(STEP) and _stage(key) == stage
                         and value is not None] for epoch in record.epochs
    }
    return {number: np.mean(v) for number, v in found.items() if v}


def _stage(key: str) -> int:
    """Of a block, by its name; 1 where the network has no stages."""
    match = re.search(r'layer(\d+)', key)
    return int(match[1]) if match else 1


def _mark_stages(axes, records: list[StudyRecord]) -> None:
    """An x axis of blocks, with lines between the stages."""
    stages = max(([block['stage'] for block in m['blocks']]
                  for r in records for m in r.stiffness.values()), key=len)
    for i, (one, other) in enumerate(zip(stages, stages[1:]), 1):
        if one != other:
            axes.axvline(i + .5, color=theme().muted, linewidth=points(.8))
    axes.set(xlabel='measured block, by stage',
             xlim=(.5, len(stages) + .5))
    axes.xaxis.get_major_locator().set_params(integer=True)


def _mark_epochs(axes) -> None:
    axes.set_xlabel('epoch')
    axes.xaxis.get_major_locator().set_params(integer=True)


def _set_scale(panels: list, name: str, values: list[list]) -> None:
    """A log scale of the axes x or y if the values of one reach far."""
    positive = all(v > 0 for own in values for v in own)
    if not positive or not any(own and max(own) > WIDE * min(own)
                               for own in values):
        return
    for axes in panels:
        axis = dict(x=axes.xaxis, y=axes.yaxis)[name]
        axes.set(**{f'{name}scale': 'log'})
        axis.get_major_locator().set_params(subs=[1, 2, 5])
        axis.set_major_formatter('{x:g}')
        axis.set_minor_formatter('')


def _correlation(records: list[StudyRecord], definition: str) -> str:
    found = over_runs(records, definition, 'tns')
    if isinstance(found, str):
        return f'no correlation: {found}'
    tau, rho = (f'{row["statistic"]:+.2f}'.replace('-', '−')
                for row in found.values())
    return f'τ {tau}, ρ {rho} over runs'


def _metric(records: list[StudyRecord]) -> str:
    return records[0].metric


def _legend_of(axes) -> None:
    """What the first panel shows, below all of them."""
    legend_below(axes.figure, axes.get_legend_handles_labels()[0], 3.5)
