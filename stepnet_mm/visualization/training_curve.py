"""TNS and NSI over the iterations of a training run."""
import re
from collections.abc import Sequence
from pathlib import Path

from ..analysis.runs import joined, parse_line
from .style import legend_beside, look, new_figure, points, styled

#: Every measurement of TNSHook has it.
MARK = '/nonfinite'
#: TNS over samples, each with its look; earlier versions logged the mean only.
TNS = dict(tns='mean', tns_median='median', tns_q95='95 % quantile')


def read_stiffness_curve(work_dir, name: str = 'stiffness') -> list[dict]:
    """Read what a ``TNSHook`` wrote into a work dir.

    A resumed run goes on where the one before it stood: of measurements at
    or after its first one, those of earlier runs are dropped.

    Args:
        work_dir (str | Path): a work dir.
        name (str): the hook's ``name``.

    Returns:
        list[dict]: one dict per measurement, in order: ``step``, the
        iteration; ``tns``, ``tns_median``, ``nsi_stage1_mean``, ...,
        ``nonfinite``.

    Raises:
        FileNotFoundError: if no run in it has such a record.
    """
    curves = read_stiffness_curves(work_dir)
    if name not in curves:
        raise FileNotFoundError(
            f'{work_dir}: expected a stiffness record {name!r} in a '
            f'file of <run>/vis_data, got {sorted(curves)}; name one of '
            'these, or train with TNSHook and LocalVisBackend')
    return curves[name]


def read_stiffness_curves(work_dir) -> dict[str, list[dict]]:
    """Read the measurements of every ``TNSHook``, by its name."""
    curves: dict[str, dict[Path, list[dict]]] = {}
    # Those of earlier versions are in scalars.json.
    for path in sorted(Path(work_dir).glob('*/vis_data/*.json')):
        for name, rows in _read_run(path).items():
            curves.setdefault(name, {})[path] = rows
    return {name: joined(starts) for name, starts in curves.items()}


def _read_run(path: Path) -> dict[str, list[dict]]:
    curves: dict[str, list[dict]] = {}
    for text in path.read_bytes().splitlines():
        line = parse_line(text) or {}
        names = {key.partition('/')[0] for key in line if key != 'step'}
        # Lines of TNSMetric have the evaluation's other numbers too.
        if len(names) == 1 and f'{min(names)}{MARK}' in line:
            name = names.pop()
            curves.setdefault(name, []).append({
                key.partition('/')[2] or key: value
                for key, value in line.items()
            })
    return curves


@styled
def curve_figure(curve: list[dict], title: str | None = None):
    """Draw TNS, and below it the NSI of each stage, over the iterations.

    TNS is drawn as its mean, median and 95 % quantile over samples, where
    they were measured. The band of a stage reaches from its mean to its
    maximum.

    Args:
        curve (list[dict]): as :func:`read_stiffness_curve` returns it.
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
