"""Figures of a study's records: accuracy, gains, Δt, stiffness, curves."""
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from method_styles import label, method_styles
from tables import STEP, percent, test_column

from stepnet_mm.visualization import save_figure, style

#: Methods that all have a curve; of more, see :func:`shown_curves`.
MOST = 12
METRICS = {'accuracy/top1': 'top-1 accuracy, % of the test images',
           'coco/bbox_mAP': 'AP on the validation images, %',
           'test AP': 'AP on the test images, %'}


def write_figures(report, page: Path, dry: bool = False) -> dict[str, str]:
    """Write ``figures/PAGE_*.png`` beside a page, if not ``dry``.

    Returns:
        dict: caption -> link, relative to the page.
    """
    links = {}
    for name, shown, draw, caption in (
            ('accuracy', len(report.frame), accuracy_figure,
             accuracy_caption(report)),
            ('gains', bool(report.networks), gains_figure,
             'The gain over the mean of the same network without a step: a '
             'dot for each run, a bar at the mean'),
            ('steps', report.frame[STEP].round(1).nunique() > 4, steps_figure,
             'The last epoch over mean Δt: a dot for each run; a block '
             'without a step has Δt = 1; without networks whose norms damp f '
             '(last γ below 1, IEBN)'),
            ('fig7', report.compares_stiffness, stiffness_figure,
             'The last epoch over mean TNS by definition of NSI, as the '
             "paper's Fig. 7"),
            ('curves', has_curves(report), learning_curves_figure,
             curves_caption(report))):
        if shown:
            links[caption] = f'figures/{page.name}_{name}.png'
            if not dry:
                save_figure(style.styled(draw)(report),
                            page.parent / links[caption])
    return links


def title(report) -> str:
    """Data, network and epochs begin a study's docstring."""
    return report.subject.about.partition('\n')[0].rstrip('.')


def judged(report) -> str:
    """The column of the results: on test data, or after the last epoch."""
    tested = test_column(report.metric)
    return tested if tested in report.frame else 'last'


def own_baselines(report) -> dict[str, str]:
    """Method -> its own baseline, if that is not one of the page's."""
    return {name: method.baseline for name, method in report.methods.items()
            if method.baseline in {*report.methods} - {*report.baselines}}


def accuracy_caption(report) -> str:
    column = judged(report)
    lines = [f'dashed: the mean of {label(name)}'
             for name in report.baselines if len(report.last(name, column))]
    if own_baselines(report):
        lines.append('dotted: that of its own baseline')
    if 0 < report.pooled.ngroups < report.runs.ngroups:
        lines.append('methods whose standard deviations do not pool have a '
                     'panel of their own')
    return '; '.join([
        ('After the last epoch' if column == 'last' else
         'The checkpoint that validation chose')
        + ': a dot for each run, a bar at the mean', *lines])


def accuracy_figure(report):
    """The metric of every run, methods sorted by their mean."""
    column = judged(report)
    means = report.runs[column].mean().dropna().sort_values()
    means.index = means.index.astype(str)
    groups = means.groupby(lambda name: not report.methods[name].pooled)
    figure = style.new_figure(7, 1.6 + .27 * len(means))
    own, bases = method_styles(report.methods), own_baselines(report)
    panels = figure.subplots(len(groups), squeeze=False,
                             height_ratios=groups.size() + 1)[:, 0]
    for axes, (_, group) in zip(panels, groups):
        for y, (name, mean) in enumerate(group.items()):
            last = report.last(name, column)
            axes.plot(last, [y] * len(last), 'o', alpha=.7,
                      color=own[name]['color'])
            axes.plot(mean, y, '|', color=style.INK, markersize=13,
                      markeredgewidth=2)
            if (base := bases.get(name)) in means:
                axes.plot([means[base]] * 2, [y - .4, y + .4], ':',
                          color=own[base]['color'])
        for name in report.baselines:
            if name in means and means[name] >= group.min():
                axes.axvline(means[name], zorder=1, linestyle='--',
                             color=own[name]['color'])
        axes.set(yticks=range(len(group)), yticklabels=map(label, group.index),
                 ylim=(-.7, len(group) - .3))
    panels[0].set_title(title(report))
    metric = report.metric if column == 'last' else column
    panels[-1].set_xlabel(METRICS.get(metric, metric))
    return figure


def gains_figure(report):
    """What every run gains over the mean of its network's plain ones."""
    networks = report.networks
    figure = style.new_figure(7, 1.8 + .8 * len(networks))
    axes = figure.subplots()
    own = method_styles(dict.fromkeys(
        step for names in networks.values() for step in names))
    places = dict(zip(own, np.linspace(-.3, .3, len(own))))
    for step, place in places.items():
        gains = pd.DataFrame([
            (gain, y + place) for y, names in enumerate(networks.values())
            for gain in report.last(names.get(step, ''))
            - report.last(names['plain']).mean()], columns=['gain', 'y'])
        axes.plot(gains.gain, gains.y, linestyle='', alpha=.7, **own[step])
        means = gains.groupby('y').gain.mean()
        axes.plot(means, means.index, '|', color=style.INK, markersize=13,
                  markeredgewidth=2)
    axes.axvline(0, zorder=1, linestyle='--', color=own['plain']['color'])
    axes.set(yticks=range(len(networks)), yticklabels=networks,
             ylim=(len(networks) - .4, -.6), title=title(report),
             xlabel='gain over plain, points')
    style.legend_below(figure, axes.get_legend_handles_labels()[0])
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
    # A few that do not pool may lie far off and squeeze the others.
    frame = report.of_one_recipe().dropna(how='all', subset=[*columns])
    figure, own = style.new_figure(width, 5), method_styles(report.methods)
    panels = figure.subplots(1, len(columns), squeeze=False, sharey=True)[0]
    for axes, column, text in zip(panels, columns, titles):
        for method, runs in frame.groupby('method', observed=True):
            axes.plot(runs[column], runs['last'], linestyle='', alpha=.8,
                      **own[method])
        low, high = frame[column].min(), frame[column].max()
        if 0 < 3 * low < high:
            axes.set_xscale('log')
            style.log_ticks(axes.xaxis, low, high)
            axes.xaxis.set_minor_formatter('')
        axes.set(xlabel=column.partition(',')[0], title=text)
    return finished(report, figure, panels)


def shown_curves(report) -> set[str]:
    """All methods; of many those of the last study, or the best known."""
    subject = {method.name for method in report.subject.methods}
    return {*report.methods} if len(report.methods) <= MOST else {
        *report.baselines, *(
            subject if len(subject) <= MOST else style.METHODS)}


def has_curves(report) -> bool:
    """Whether there are three methods, and three values of a run."""
    values = (len([epoch for epoch in record.epochs
                   if epoch.get(report.metric) is not None])
              for record in report.records)
    return report.runs.ngroups > 2 and max(values, default=0) > 2


def curves_caption(report) -> str:
    return ('By epoch, means over runs'
            + f', minus that of {label(report.control)}' * bool(report.control)
            + '; without variants and other studies'
            * (len(shown_curves(report)) < len(report.methods)))


def learning_curves_figure(report):
    """The metric by epoch, a mean over the runs of each method.

    Minus that of the first control, which shows how a gain goes on.
    """
    figure, own = style.new_figure(7, 5), method_styles(report.methods)
    axes = figure.subplots()
    rows = pd.DataFrame([
        dict(epoch, method=record.method)
        for record in report.records for epoch in record.epochs])
    rows[report.metric] = [percent(report.metric, value)
                           for value in rows[report.metric]]
    table = rows.pivot_table(report.metric, 'epoch', 'method')
    control = report.control
    if control in table:
        table = table.sub(table[control], axis=0)
    shown = shown_curves(report)
    for method in (name for name in own if name in table and name in shown):
        means = table[method].dropna()
        axes.plot(means.index, means, **own[method],
                  alpha=1. if method in style.METHODS else .5)
    # A record does not say which of the two it counts.
    axes.set_xlabel('epoch' if table.index.max() < 500 else 'iteration')
    axes.xaxis.get_major_locator().set_params(integer=True)
    finished(report, figure, [axes])
    if control in table:
        axes.set_ylabel(f'difference to {label(control)}, points')
    return figure


def finished(report, figure, panels):
    """The figure with metric, title and legend."""
    panels[0].set_ylabel(METRICS.get(report.metric, report.metric))
    figure.suptitle(title(report))
    style.legend_below(figure, panels[0].get_legend_handles_labels()[0])
    return figure
