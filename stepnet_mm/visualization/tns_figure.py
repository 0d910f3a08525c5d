"""TNS of several networks, with intervals: Fig. 8 of the paper."""
import re
from textwrap import fill

from ..analysis import FEW_SEEDS, MethodTNS, tns_by_method
from .canvas import (
    check_records,
    lost_note,
    name_lines,
    new_figure,
    set_scale,
)
from .style import WIDTH, look, points, styled, theme

#: A panel each: its key in the estimates, and the label of its axis.
PANELS = dict(tns='mean', tns_median='median', tns_q95='95 % quantile')
#: What is drawn side by side, where names differ in it alone.
PAIR = ['plain', 'stepnet']


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
