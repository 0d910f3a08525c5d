"""Networks and runs side by side: Fig. 7 and 8, and properties of §3.1."""
import re
from textwrap import fill

import numpy as np

from ..analysis import FEW_SEEDS, MethodTNS, method_of, tns_by_method
from ..stiffness import (
    StiffnessRecord,
    labels,
    stage_summary,
    stiffness_proportion,
    stiffness_survival,
)
from .stiffness_figures import check_records, lost_note
from .style import (
    WIDTH,
    legend_below,
    look,
    mark,
    name_lines,
    new_figure,
    points,
    set_scale,
    styled,
    theme,
)

#: A panel each: its key in the estimates, and the label of its axis.
PANELS = dict(tns='mean', tns_median='median', tns_q95='95 % quantile')
#: What is drawn side by side, where names differ in it alone.
PAIR = ['plain', 'stepnet']
#: How many thresholds M1 a line joins.
POINTS = 101


@styled
def tns_figure(records: list):
    """TNS by network or trick, with intervals (Fig. 8).

    Records whose names differ in their ``_seedN`` alone are one network. Its
    seeds are drawn too, and its interval is one over them, of fewer than five
    their range; otherwise it is one over samples. Two names that differ in
    plain and stepnet alone share a row.

    Args:
        records (list[StiffnessRecord]): of at least one network.

    Returns:
        matplotlib.figure.Figure: panels of mean, median and 95 % quantile.

    Raises:
        ValueError: on records that do not go together.
    """
    check_records(records)
    methods = tns_by_method(records)
    rows = _rows(methods)
    figure = new_figure(WIDTH, 1.9 + .36 * len(rows))
    panels = figure.subplots(1, len(PANELS), sharey=True)
    for axes, (key, label) in zip(panels, PANELS.items()):
        _draw(axes, rows, key)
        axes.set_xlabel(f'{label} of samples')
    panels[0].set_yticks(range(len(rows)), [fill(name, 26) for name in rows])
    panels[0].set_ylim(len(rows) - .5, -.5)
    if any(len(row) > 1 for row in rows.values()):
        name_lines(figure, PAIR)
    figure.suptitle('TNS (Eq. 5) and ' + _intervals(methods)
                    + lost_note(records))
    return figure


def _intervals(methods: list[MethodTNS]) -> str:
    """What the lines are."""
    counts = {method['seeds'] for method in methods}
    kinds = {
        '95 % bootstrap intervals over samples': 1 in counts,
        'ranges of seeds': any(1 < n < FEW_SEEDS for n in counts),
        '95 % bootstrap intervals over seeds': max(counts) >= FEW_SEEDS
    }
    text = ',\n'.join(kind for kind, there in kinds.items() if there)
    return text if max(counts) == 1 else f'{text} (small dots: single seeds)'


def _rows(methods: list[MethodTNS]) -> dict[str, dict[str, MethodTNS]]:
    """Label of a row -> what is drawn in it, by its part of a pair."""
    names = {method['name'] for method in methods}
    rows: dict[str, dict[str, MethodTNS]] = {}
    for method in methods:
        label, part = _split(method['name'], names)
        rows.setdefault(label, {})[part] = method
    return {_with_seeds(label, row): row for label, row in rows.items()}


def _split(name: str, names: set[str]) -> tuple[str, str]:
    """A name without plain or stepnet, and which; if its twin is there."""
    for part, other in (PAIR, PAIR[::-1]):
        found = re.fullmatch(f'(.*_|){part}(_.*|)', name)
        if found and found[1] + other + found[2] in names:
            return (found[1] + found[2][1:]).rstrip('_') or 'network', part
    return name, ''


def _with_seeds(label: str, row: dict[str, MethodTNS]) -> str:
    seeds = [method['seeds'] for method in row.values()]
    if max(seeds) == 1:
        return label
    return f'{label} (seeds: {", ".join(map(str, dict.fromkeys(seeds)))})'


def _draw(axes, rows: dict, key: str) -> None:
    """Draw one number of all networks."""
    ends = []
    for place, row in enumerate(rows.values()):
        for part, method in row.items():
            value, low, high, seeds = method['estimates'][key].values()
            y = place + .14 * (PAIR.index(part) * 2 - 1 if part else 0)
            style = look(PAIR.index(part)) if part else dict(
                color=theme().ink)
            axes.plot([low, high], [y, y], **style)
            axes.plot(value, y, marker='o', color=style['color'])
            axes.plot(seeds, [y] * len(seeds), '.', color=style['color'],
                      markersize=points(4), markerfacecolor=theme().paper)
            ends += [value, low, high, *seeds]
    axes.locator_params(axis='x', nbins=4)
    set_scale(axes, 'x', min(ends), max(ends))


@styled
def property_figure(records: list, m2: float = 0., mark: float | None = None):
    """How many samples are stiff, and how many blocks, over M1.

    Left, property (1): δ(M1, M2) of Eq. 5. Right, property (2): p̂(M1, M2).
    M1 goes from 0 to where δ is about 1 % in all records, or to the mark.

    Args:
        records (list[StiffnessRecord]): a line each.
        m2 (float): the threshold M2 >= 0 of both.
        mark (float, optional): a value of M1 to mark.

    Returns:
        matplotlib.figure.Figure: two panels.

    Raises:
        ValueError: on records that do not go together, or a negative M2.
    """
    check_records(records)
    highest = max(mark or 0., *map(_highest_m1, records)) or 1.
    m1 = np.linspace(0, highest, POINTS)
    figure = new_figure(WIDTH, 4)
    left, right = figure.subplots(1, 2)
    for i, record in enumerate(records):
        for axes, share in ((left, stiffness_survival),
                            (right, stiffness_proportion)):
            found = share(record.nsi, record.stage, m1, [m2])[:, 0]
            axes.plot(m1, 100 * found, **look(i))
    _describe(left, f'(1) samples: δ(M1, {m2:g})', '% of the samples', mark)
    _describe(right, f'(2) blocks: p̂(M1, {m2:g})', '% of the blocks', mark)
    name_lines(figure, labels(records))
    figure.suptitle('Stiff samples and stiff blocks' + lost_note(records))
    return figure


def _highest_m1(record: StiffnessRecord) -> float:
    """The M1 that about one sample in a hundred reaches in some stage."""
    _, mean, maximum, finite = stage_summary(record.nsi, record.stage)
    excess = (maximum / mean - 1).nan_to_num(0.)[finite].amax(1)
    return float(np.quantile(excess.numpy(), .99))


def _describe(axes, title: str, label: str, mark: float | None) -> None:
    axes.set(title=title, xlabel='M1', ylabel=label, ylim=(0, 102))
    if mark is not None:
        axes.axvline(mark, color=theme().muted, linewidth=points(1),
                     linestyle=':', zorder=0)


@styled
def plot_correlation(runs: list, metric: str, title: str | None = None,
                     label: str = 'TNS (Eq. 5)'):
    """Scatter of the metric over TNS, a colour and marker per method.

    Args:
        runs (list[dict]): ``name``, ``tns`` and ``metric`` of each run.
        metric (str): what the metric is called.
        title (str, optional): heading.
        label (str): of the axis of TNS.

    Returns:
        matplotlib.figure.Figure: to save or to show.
    """
    methods = list(dict.fromkeys(method_of(run['name']) for run in runs))
    figure = new_figure(7, 5)
    axes = figure.subplots()
    for i, method in enumerate(methods):
        own = [run for run in runs if method_of(run['name']) == method]
        axes.scatter([run['tns'] for run in own],
                     [run['metric'] for run in own], label=method, **mark(i))
    axes.set(xlabel=label, ylabel=metric, title=title)
    legend_below(figure, list(axes.collections))
    return figure
