"""Figures of a study's records: accuracy, Δt, stiffness, curves."""
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
from study_tables import STEP

from stepnet_mm.visualization.style import (
    color,
    legend_below,
    new_figure,
    points,
    save_figure,
    styled,
    theme,
)

#: One name and one colour of the style for each method, in every figure.
LOOKS = dict(plain=('plain', None), constant=('constant 0.27', 3),
             stepnet=('StepNet', 1), se=('SE', 0), eca=('ECA', 5),
             cbam=('CBAM', 2), srm=('SRM', 4))
#: Colours of the others, in turn.
COLORS = 7
MARKERS = 'os^Dv<>pPX*h'
METRICS = {'accuracy/top1': 'top-1 accuracy, % of the test images',
           'coco/bbox_mAP': 'AP on the validation images'}
WORDS = dict(preact='pre-act.', warmup='warm-up', init='start', ema='EMA',
             cutmix='CutMix', mixup='Mixup', iebn='IEBN', sem='SEM', fca='FCA',
             **{key: name for key, (name, _) in LOOKS.items()
                if key != 'constant'}, **{'027': '0.27'})


def label(method: str) -> str:
    """A method's name in words."""
    return LOOKS[method][0] if method in LOOKS else ' '.join(
        WORDS.get(word, word) for word in method.split('_'))


def looks(report) -> dict[str, dict]:
    """Colour, marker and label of each method; variants have its colour.

    No two methods have both colour and marker in common.
    """
    found: dict[str, dict] = {}
    last: dict[int | None, int] = {}  # of a colour, its last marker
    # Those that have a colour of their own come first.
    for name in sorted(report.methods, key=lambda name: name not in LOOKS):
        base = name.partition('_')[0]
        others = sum(own.partition('_')[0] not in LOOKS for own in found)
        index = LOOKS[base][1] if base in LOOKS else others % COLORS
        last[index] = last.get(index, -1 if base in LOOKS else 0) + 1
        found[name] = dict(
            color=theme().muted if index is None else color(index),
            label=label(name), marker=MARKERS[last[index] % len(MARKERS)])
    return found


def write_figures(report, page: Path, dry: bool = False) -> dict[str, str]:
    """Write ``figures/PAGE_*.png`` beside a page, if not ``dry``.

    Returns:
        dict: caption -> link, relative to the page.
    """
    links = {}
    for name, caption, draw in drawings(report):
        links[caption] = f'figures/{page.name}_{name}.png'
        if not dry:
            save_figure(styled(draw)(report), page.parent / links[caption])
    return links


def drawings(report) -> Iterator[tuple[str, str, Callable]]:
    """Name, caption and function of each figure that the records give."""
    if len(report.frame):
        yield ('accuracy',
               'After the last epoch: a dot for each run, a bar at the mean; '
               "dashed: plain's and the constant's; a panel of its own scale "
               'for methods whose standard deviations do not pool',
               accuracy_figure)
    if report.frame.dropna(subset=[STEP]).method.nunique() > 2:
        yield ('steps',
               'The last epoch over mean Δt: a dot for each run; a block '
               'without a step has Δt = 1; methods whose standard deviations '
               'pool', steps_figure)
    if any(report.frame[f'mean TNS, {name}'].notna().any()
           for name in report.definitions):
        yield ('fig7',
               'The last epoch over mean TNS by definition of NSI, as the '
               "paper's Fig. 7; methods whose standard deviations pool",
               stiffness_figure)
    if any(epoch.get(report.metric) is not None
           for record in report.records for epoch in record.epochs):
        yield 'curves', 'By epoch, means over runs', curves_figure


def finish(report, figure, axes) -> None:
    """Metric, title and legend; data, network and epochs begin a study."""
    axes[0].set_ylabel(METRICS.get(report.metric, report.metric))
    figure.suptitle(report.studies[-1].about.partition('\n')[0])
    legend_below(figure, axes[0].get_legend_handles_labels()[0])


def accuracy_figure(report):
    """The last epoch of every run, methods sorted by their mean."""
    means = report.runs['last'].mean().sort_values()
    means.index = means.index.astype(str)
    groups = means.groupby(lambda name: not report.methods[name].pooled)
    figure, own = new_figure(7, 1.6 + .27 * len(means)), looks(report)
    panels = figure.subplots(len(groups), squeeze=False,
                             height_ratios=groups.size() + 1)[:, 0]
    for axes, (_, group) in zip(panels, groups):
        for y, (name, mean) in enumerate(group.items()):
            last = report.last(name)
            axes.plot(last, [y] * len(last), 'o', alpha=.7,
                      color=own[name]['color'])
            axes.plot(mean, y, '|', color=theme().ink,
                      markersize=points(13), markeredgewidth=points(2))
        for name in ('plain', 'constant'):
            if name in means and means[name] >= group.min():
                axes.axvline(means[name], zorder=0, linestyle='--',
                             color=own[name]['color'])
        axes.set(yticks=range(len(group)), yticklabels=map(label, group.index),
                 ylim=(-.7, len(group) - .3))
    panels[0].set_title(report.studies[-1].about.partition('\n')[0])
    panels[-1].set_xlabel(METRICS.get(report.metric, report.metric))
    return figure


def steps_figure(report):
    """The last epoch over mean Δt, a dot for each run."""
    figure = scatter(report, {STEP: ''}, 7)
    axes, = figure.axes
    low, high = axes.get_xlim()
    axes.set_xticks([tick for tick in (.05, .1, .2, .3, .5, .7, 1.)
                     if low < tick < high], minor=False)
    return figure


def stiffness_figure(report):
    """The last epoch over mean TNS, a panel for each definition."""
    return scatter(report, {
        f'mean TNS, {name}': name for name in report.definitions}, 8.75)


def scatter(report, columns: dict[str, str], width: float):
    """The last epoch over columns, a panel with a title for each."""
    frame = report.frame.dropna(how='all', subset=[*columns])
    # Others may lie far off and squeeze those that pool.
    pooled = frame[frame.pooled]
    frame = pooled if pooled.method.nunique() > 2 else frame
    figure, own = new_figure(width, 5), looks(report)
    panels = figure.subplots(1, len(columns), squeeze=False, sharey=True)[0]
    for axes, (column, title) in zip(panels, columns.items()):
        for method, runs in frame.groupby('method', observed=True):
            axes.plot(runs[column], runs['last'], linestyle='', alpha=.8,
                      **own[method])
        if frame[column].min() > 0:
            axes.set_xscale('log')
            axes.xaxis.get_major_locator().set_params(subs=[1, 2, 5])
            axes.xaxis.set_major_formatter('{x:g}')
            axes.xaxis.set_minor_formatter('')
        axes.set(xlabel=column.partition(',')[0], title=title)
    finish(report, figure, panels)
    return figure


def curves_figure(report):
    """The metric by epoch, a mean over the runs of each method."""
    figure, own = new_figure(7, 5), looks(report)
    axes = figure.subplots()
    rows = pd.DataFrame([
        dict(epoch, method=record.method)
        for record in report.records for epoch in record.epochs])
    for method, means in rows.pivot_table(
            report.metric, 'epoch', 'method', sort=False).items():
        means = means.dropna().sort_index()
        known = method in LOOKS
        axes.plot(means.index, means, **own[method],
                  alpha=1. if known else .5, zorder=3 if known else 2)
    axes.set_xlabel('epoch')
    axes.xaxis.get_major_locator().set_params(integer=True)
    finish(report, figure, [axes])
    return figure
