"""Figures of a study's records: accuracy, Δt, stiffness, curves."""
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
from method_colors import label, looks
from study_tables import STEP, percent

from stepnet_mm.visualization import save_figure, style
from stepnet_mm.visualization.style import METHODS

#: Methods that all have a curve of their own; of more, the best known.
MOST = 12
METRICS = {'accuracy/top1': 'top-1 accuracy, % of the test images',
           'coco/bbox_mAP': 'AP on the validation images, %'}


def write_figures(report, page: Path, dry: bool = False) -> dict[str, str]:
    """Write ``figures/PAGE_*.png`` beside a page, if not ``dry``.

    Returns:
        dict: caption -> link, relative to the page.
    """
    measured = report.frame.filter(like='mean TNS').notna().any(axis=1)
    own_scale = (
        '; methods whose standard deviations do not pool have a panel of '
        'their own' if 0 < report.pooled.ngroups < report.runs.ngroups else '')
    links = {}
    for name, shown, draw, caption in (
            ('accuracy', len(report.frame), accuracy_figure,
             'After the last epoch: a dot for each run, a bar at the mean; '
             'dashed: the mean of plain, of the constant and of other '
             f'baselines, if few{own_scale}'),
            ('steps', report.frame[STEP].round(1).nunique() > 4, steps_figure,
             'The last epoch over mean Δt: a dot for each run; a block '
             'without a step has Δt = 1; without networks whose norms damp f '
             '(last γ below 1, IEBN)'),
            ('fig7', report.frame.method[measured].nunique() > 2,
             stiffness_figure,
             'The last epoch over mean TNS by definition of NSI, as the '
             "paper's Fig. 7"),
            ('curves',
             any(epoch.get(report.metric) is not None
                 for record in report.records for epoch in record.epochs),
             curves_figure, 'By epoch, means over runs' + (
                 '; thin: the other methods' if report.runs.ngroups > MOST
                 else ''))):
        if shown:
            links[caption] = f'figures/{page.name}_{name}.png'
            if not dry:
                save_figure(style.styled(draw)(report),
                            page.parent / links[caption])
    return links


def title(report) -> str:
    """Data, network and epochs begin a study's docstring."""
    return report.studies[-1].about.partition('\n')[0].rstrip('.')


def accuracy_figure(report):
    """The last epoch of every run, methods sorted by their mean."""
    means = report.runs['last'].mean().sort_values()
    means.index = means.index.astype(str)
    groups = means.groupby(lambda name: not report.methods[name].pooled)
    figure = style.new_figure(7, 1.6 + .27 * len(means))
    own = looks(report.methods)
    others = {method.baseline for method in report.methods.values()}
    controls = {'plain', 'constant', *(others if len(others) < 4 else ())}
    panels = figure.subplots(len(groups), squeeze=False,
                             height_ratios=groups.size() + 1)[:, 0]
    for axes, (_, group) in zip(panels, groups):
        for y, (name, mean) in enumerate(group.items()):
            last = report.last(name)
            axes.plot(last, [y] * len(last), 'o', alpha=.7,
                      color=own[name]['color'])
            axes.plot(mean, y, '|', color=style.INK, markersize=13,
                      markeredgewidth=2)
        for name in controls:
            if name in means and means[name] >= group.min():
                axes.axvline(means[name], zorder=1, linestyle='--',
                             color=own[name]['color'])
        axes.set(yticks=range(len(group)), yticklabels=map(label, group.index),
                 ylim=(-.7, len(group) - .3))
    panels[0].set_title(title(report))
    panels[-1].set_xlabel(METRICS.get(report.metric, report.metric))
    return figure


def steps_figure(report):
    """The last epoch over mean Δt, a dot for each run."""
    figure = scatter(report, [STEP], [''], 7)
    axes, = figure.axes
    low, high = axes.get_xlim()
    axes.set_xticks([tick for tick in (.05, .1, .2, .3, .5, .7, 1.)
                     if low < tick < high], minor=False)
    return figure


def stiffness_figure(report):
    """The last epoch over mean TNS, a panel for each definition.

    One for several with the same values, as in a ViT.
    """
    names: dict[tuple, list[str]] = {}
    for name in report.definitions:
        values = report.frame[f'mean TNS, {name}'].fillna(-1)
        names.setdefault(tuple(values), []).append(name)
    return scatter(report, [f'mean TNS, {same[0]}' for same in names.values()],
                   ['NSI: ' + ', '.join(same) for same in names.values()],
                   8.75)


def scatter(report, columns: Iterable[str], titles: Iterable[str],
            width: float):
    """The last epoch over columns, a panel for each."""
    frame = report.frame.dropna(how='all', subset=[*columns])
    # A few that do not pool may lie far off and squeeze the others.
    pooled = frame[frame.pooled]
    if 2 * pooled.method.nunique() > frame.method.nunique():
        frame = pooled
    figure, own = style.new_figure(width, 5), looks(report.methods)
    panels = figure.subplots(1, len(columns), squeeze=False, sharey=True)[0]
    for axes, column, text in zip(panels, columns, titles):
        for method, runs in frame.groupby('method', observed=True):
            axes.plot(runs[column], runs['last'], linestyle='', alpha=.8,
                      **own[method])
        if 0 < 3 * frame[column].min() < frame[column].max():
            axes.set_xscale('log')
            axes.xaxis.get_major_locator().set_params(subs=[1, 2, 5])
            axes.xaxis.set_major_formatter('{x:g}')
            axes.xaxis.set_minor_formatter('')
        axes.set(xlabel=column.partition(',')[0], title=text)
    return finished(report, figure, panels)


def curves_figure(report):
    """The metric by epoch, a mean over the runs of each method."""
    figure, own = style.new_figure(7, 5), looks(report.methods)
    axes = figure.subplots()
    rows = pd.DataFrame([
        dict(epoch, method=record.method)
        for record in report.records for epoch in record.epochs])
    rows[report.metric] = [percent(report.metric, value)
                           for value in rows[report.metric]]
    table = rows.pivot_table(report.metric, 'epoch', 'method')
    few = len(table.columns) <= MOST
    for method in filter(table.__contains__, own):
        means = table[method].dropna()
        if few or method in METHODS:
            axes.plot(means.index, means, **own[method],
                      alpha=1. if method in METHODS else .5)
        else:
            axes.plot(means.index, means, color=METHODS['plain'], alpha=.3,
                      linewidth=1, zorder=1)
    # A record does not say which of the two it counts.
    axes.set_xlabel('epoch' if table.index.max() < 500 else 'iteration')
    axes.xaxis.get_major_locator().set_params(integer=True)
    return finished(report, figure, [axes])


def finished(report, figure, panels):
    """The figure with metric, title and legend."""
    panels[0].set_ylabel(METRICS.get(report.metric, report.metric))
    figure.suptitle(title(report))
    style.legend_below(figure, panels[0].get_legend_handles_labels()[0])
    return figure
