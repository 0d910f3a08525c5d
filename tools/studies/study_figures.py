"""Figures of a study's records: accuracy, Δt, stiffness, curves."""
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import pandas as pd

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
    known = LOOKS.get(method)
    return known[0] if known else ' '.join(
        WORDS.get(word, word) for word in method.split('_'))


@lru_cache
def places(report) -> dict[str, tuple[int | None, int]]:
    """Colour and marker of each method: no two have both."""
    found: dict[str, tuple[int | None, int]] = {}
    # Those that have a colour of their own come first.
    for name in sorted(report.methods, key=lambda name: name not in LOOKS):
        base = name.partition('_')[0]
        others = sum(own.partition('_')[0] not in LOOKS for own in found)
        index = LOOKS[base][1] if base in LOOKS else others % COLORS
        taken = [marker for own, marker in found.values() if own == index]
        found[name] = index, max(
            taken, default=-1 if base in LOOKS else 0) + 1
    return found


def look(report, method: str) -> dict:
    """Colour, marker and label of a method; variants have its colour."""
    index, marker = places(report)[method]
    return dict(color=theme().muted if index is None else color(index),
                label=label(method), marker=MARKERS[marker % len(MARKERS)])


def write_figures(report, page: Path, dry: bool = False) -> dict[str, str]:
    """Write ``figures/PAGE_*.png`` beside a page.

    Args:
        report (Report): what the records give.
        page (Path): the page, without its suffix.
        dry (bool): nothing is drawn.

    Returns:
        dict: caption -> link, relative to the page.
    """
    links = {}
    for name, (caption, draw) in drawings(report).items():
        links[caption] = f'figures/{page.name}_{name}.png'
        if not dry:
            save_figure(draw(report), page.parent / links[caption])
    return links


def drawings(report) -> dict[str, tuple[str, Callable]]:
    """Name -> caption and function of each figure that the records give."""
    found = {}
    if len(report.frame):
        found['accuracy'] = (
            'After the last epoch: a dot for each run, a bar at the mean; '
            "dashed: plain's and the constant's; a panel of its own scale for "
            'methods whose standard deviations do not pool', accuracy_figure)
    if report.with_steps.method.nunique() > 2:
        found['steps'] = ('The last epoch over mean Δt: a dot for each run; '
                          'a block without a step has Δt = 1; methods whose '
                          'standard deviations pool', steps_figure)
    if any(report.frame[f'mean TNS, {name}'].notna().any()
           for name in report.definitions):
        found['fig7'] = (
            'The last epoch over mean TNS by definition of NSI, as the '
            "paper's Fig. 7; methods whose standard deviations pool",
            stiffness_figure)
    if any(record.epochs for record in report.records):
        found['curves'] = ('By epoch, means over runs', curves_figure)
    return found


def metric_of(report) -> str:
    """The metric in words."""
    return METRICS.get(report.metric, report.metric)


def title_of(report) -> str:
    """Data, network and epochs: how the last study begins."""
    return report.studies[-1].about.partition('\n')[0]


@styled
def accuracy_figure(report):
    """The last epoch of every run, methods sorted by their mean."""
    means = report.frame.groupby('method', observed=True)['last'].mean()
    groups = [[name for name in means.sort_values().index
               if report.methods[name].pooled == pooled]
              for pooled in (True, False)]
    groups = [names for names in groups if names]
    figure = new_figure(7, 1.6 + .27 * len(means))
    panels = figure.subplots(len(groups), squeeze=False, height_ratios=[
        len(names) + 1 for names in groups])[:, 0]
    panels[0].set_title(title_of(report))
    for axes, names in zip(panels, groups):
        for y, name in enumerate(names):
            own = report.last(name)
            axes.plot(own, [y] * len(own), 'o', alpha=.7,
                      color=look(report, name)['color'])
            axes.plot(own.mean(), y, '|', color=theme().ink,
                      markersize=points(13), markeredgewidth=points(2))
        for name in ('plain', 'constant'):
            if name in means and means[name] >= min(means[names]):
                axes.axvline(means[name], zorder=0, linestyle='--',
                             color=look(report, name)['color'])
        axes.set(yticks=range(len(names)), yticklabels=map(label, names),
                 ylim=(-.7, len(names) - .3))
    panels[-1].set_xlabel(metric_of(report))
    return figure


@styled
def steps_figure(report):
    """The last epoch over mean Δt, a dot for each run."""
    figure = new_figure(7, 5)
    axes = figure.subplots()
    frame = _of_pooled(report, report.with_steps)
    _dots(axes, report, frame, 'mean Δt')
    low, high = frame['mean Δt'].min(), frame['mean Δt'].max()
    axes.set(xscale='log', xlabel='mean Δt', ylabel=metric_of(report),
             title=title_of(report), xlim=(low / 1.3, high * 1.3))
    axes.set_xticks([tick for tick in (.05, .1, .2, .3, .5, .7, 1.)
                     if low / 1.3 < tick < high * 1.3], minor=False)
    _plain_ticks(axes.xaxis)
    legend_below(figure, axes.get_legend_handles_labels()[0])
    return figure


@styled
def stiffness_figure(report):
    """The last epoch over mean TNS, a panel for each definition."""
    frame = _of_pooled(report, report.frame)
    figure = new_figure(8.75, 5)
    panels = figure.subplots(1, len(report.definitions), squeeze=False,
                             sharey=True)[0]
    for axes, definition in zip(panels, report.definitions):
        name = f'mean TNS, {definition}'
        _dots(axes, report, frame, name)
        values = frame[name].dropna()
        if len(values) and values.min() > 0:
            axes.set_xscale('log')
            axes.xaxis.get_major_locator().set_params(subs=[1, 2, 5])
            _plain_ticks(axes.xaxis)
        axes.set(xlabel='mean TNS (Eq. 5)', title=definition)
    panels[0].set_ylabel(metric_of(report))
    figure.suptitle(title_of(report))
    legend_below(figure, panels[0].get_legend_handles_labels()[0])
    return figure


@styled
def curves_figure(report):
    """The metric by epoch, a mean over the runs of each method."""
    figure = new_figure(7, 5)
    axes = figure.subplots()
    rows = pd.DataFrame([
        (record.method, epoch['epoch'], epoch[report.metric])
        for record in report.records for epoch in record.epochs
        if epoch.get(report.metric) is not None],
        columns=('method', 'epoch', 'value'))
    for method, own in rows.groupby('method', sort=False):
        means = own.groupby('epoch')['value'].mean()
        known = method in LOOKS
        axes.plot(means.index, means, **look(report, method),
                  alpha=1. if known else .5, zorder=3 if known else 2)
    axes.set(xlabel='epoch', ylabel=metric_of(report), title=title_of(report))
    axes.xaxis.get_major_locator().set_params(integer=True)
    legend_below(figure, axes.get_legend_handles_labels()[0])
    return figure


def _of_pooled(report, frame: pd.DataFrame) -> pd.DataFrame:
    """The runs of methods that pool: others may lie far off and squeeze them.

    All runs, where fewer than three methods pool.
    """
    own = report.pooled(frame)
    return own if own.method.nunique() > 2 else frame


def _dots(axes, report, frame: pd.DataFrame, name: str) -> None:
    for method, own in frame.groupby('method', observed=True):
        axes.plot(own[name], own['last'], linestyle='', alpha=.8,
                  **look(report, method))


def _plain_ticks(axis) -> None:
    axis.set_major_formatter('{x:g}')
    axis.set_minor_formatter('')
