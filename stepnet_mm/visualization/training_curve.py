"""TNS and NSI over the iterations of a training run."""
import re
from collections.abc import Sequence

from .style import legend_beside, look, new_figure, points, styled

#: TNS over samples, each with its look.
TNS = dict(tns='mean', tns_median='median', tns_q95='95 % quantile')


@styled
def curve_figure(curve: list[dict], title: str | None = None):
    """Draw TNS, and below it the NSI of each stage, over the iterations.

    TNS is drawn as its mean, median and 95 % quantile over samples. The band
    of a stage reaches from its mean to its maximum.

    Args:
        curve (list[dict]): one dict a measurement.
        title (str, optional): heading.

    Returns:
        matplotlib.figure.Figure: two panels.
    """
    figure = new_figure(8, 5.6)
    upper, lower = figure.subplots(2, 1, sharex=True)
    _draw_tns(upper, curve)
    _draw_nsi(lower, curve)
    upper.set_title(title or 'Neural stiffness while training')
    lower.set_xlabel('iteration')
    for axes in (upper, lower):
        if len(axes.lines) > 1:
            legend_beside(axes)
    return figure


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
    for stage in _stages(curve):
        iterations, mean = _series(curve, f'nsi_stage{stage}_mean')
        highest = _series(curve, f'nsi_stage{stage}_max')[1]
        style = look(int(stage) - 1)
        axes.plot(iterations, mean, label=f'stage {stage}', **style,
                  **_dots(iterations))
        axes.fill_between(iterations, mean, highest, color=style['color'],
                          alpha=.15, linewidth=0)
    axes.set(ylabel='NSI (Eq. 4): mean to max.')
    axes.set_ylim(bottom=0)


def _dots(places: Sequence) -> dict:
    """Markers where there are few places; one place has no line."""
    few = len(places) <= 40
    return dict(marker='o', markersize=points(3)) if few else {}


def _series(curve: list[dict], key: str) -> tuple:
    """Iterations and values, where the key was measured."""
    rows = [(row['step'], row[key]) for row in curve if key in row]
    return tuple(map(list, zip(*rows))) if rows else ([], [])


def _stages(curve: list[dict]) -> list[str]:
    found = {
        match.group(1)
        for row in curve for key in row
        if (match := re.fullmatch(r'nsi_stage(\d+)_mean', key))
    }
    return sorted(found, key=int)
