"""TNS of several networks, with intervals: Fig. 8 of the paper."""
import re
from textwrap import fill

from ..analysis import MethodTNS, tns_by_method
from .canvas import (
    check_records,
    look,
    lost_note,
    name_lines,
    new_figure,
    set_scale,
)

#: What is drawn side by side, where names differ in it alone.
PAIR = ['plain', 'stepnet']


def tns_figure(records: list):
    """TNS by network or trick: mean and median with intervals (Fig. 8).

    Records whose names differ in their ``_seedN`` alone are one network, and
    its interval is one over seeds, otherwise over samples. Two names that
    differ in plain and stepnet alone share a row.

    Args:
        records (list[StiffnessRecord]): of at least one network.

    Returns:
        matplotlib.figure.Figure: a panel of means, one of medians.

    Raises:
        ValueError: on records that do not go together.
    """
    check_records(records)
    rows = _rows(tns_by_method(records))
    longest = max(map(len, rows))
    figure = new_figure(6.5 + .07 * min(longest, 40), 1.9 + .34 * len(rows))
    for axes, key in zip(figure.subplots(1, 2, sharey=True),
                         ('mean', 'median')):
        _draw(axes, rows, key)
    axes.set_yticks(range(len(rows)), [fill(name, 40) for name in rows])
    axes.set_ylim(len(rows) - .5, -.5)
    if any(len(row) > 1 for row in rows.values()):
        name_lines(figure, PAIR)
    figure.suptitle('TNS (Eq. 5) and its 95 % bootstrap intervals: over '
                    'samples,\nor over seeds where a row has several'
                    + lost_note(records))
    return figure


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
            value, low, high = method[key].values()
            y = place + .14 * (PAIR.index(part) * 2 - 1 if part else 0)
            color = look(PAIR.index(part))['color'] if part else 'black'
            axes.plot([low, high], [y, y], color=color)
            axes.plot(value, y, marker='o', markersize=5, color=color)
            ends += [value, low, high]
    axes.locator_params(axis='x', nbins=6)
    set_scale(axes, 'x', min(ends), max(ends))
    axes.set_xlabel(f'{key} of samples')
    axes.grid(alpha=.3)
