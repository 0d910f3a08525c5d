"""What the figures of stiffness records share.

matplotlib is imported inside functions, so that this package stays cheap to
import, and pyplot nowhere, so that no figure stays open.
"""
import functools
import math
import re
from pathlib import Path
from textwrap import fill

import numpy as np

from ..stiffness import StiffnessRecord, labels
from ..utils.replaced_method import ReplacedMethod
from .style import FONT, SMALL, WIDTH, look, parameters, size

#: What matplotlib's own tick labels with powers begin with.
TICK = r'$\mathdefault{'
#: Formats whose files say when they were written, and where.
DATES = {'.svg': 'Date', '.pdf': 'CreationDate'}
#: A wider range than this in one figure is drawn on a log scale.
LINEAR = 30


def check_records(records: list[StiffnessRecord]) -> None:
    """Refuse records that one figure or report cannot show.

    Args:
        records (list[StiffnessRecord]): what is to be shown together.

    Raises:
        ValueError: without records, with records of different definitions,
            or with one that has no finite sample.
    """
    if not records:
        raise ValueError(
            'records: expected at least one stiffness record, got none')
    definitions = {r.header.definition: r.name for r in records}
    if len(definitions) > 1:
        raise ValueError(
            'records: expected one definition of NSI, got (with a record of '
            f'each): {definitions}; measure all with one --definition')
    for record in records:
        if not record.finite.any():
            raise ValueError(
                f'{record.name}: expected a sample with a finite NSI '
                f'everywhere, got none in {len(record.nsi)}; leave it out')


def file_name(label: str) -> str:
    """A label as part of a file's name."""
    return re.sub(r'[^\w.-]+', '_', label).strip('_')


def lost_note(records: list[StiffnessRecord]) -> str:
    """A line about the samples that are left out; empty if none is."""
    parts = []
    for label, record in zip(labels(records), records):
        if record.lost:
            name = f'{label}: ' if len(records) > 1 else ''
            parts.append(f'{name}{record.lost} of {len(record.nsi)}')
    text = fill(f'not finite, left out: {", ".join(parts)}', 60)
    return f'\n{text}' if parts else ''


def new_figure(width: float, height: float, formulas: bool = False):
    """An empty matplotlib Figure in the current style.

    A dollar sign in a name is drawn as it is, and begins no mathematics,
    unless its texts are formulas.

    Args:
        width (float): in inches on a screen, at most ``style.WIDTH``.
        height (float): likewise, without a limit.
        formulas (bool): whether dollar signs begin mathematics.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    style, scale = parameters(), size().scale
    with rc_context(style):
        figure = Figure(
            figsize=(scale * min(width, WIDTH), scale * height),
            layout='constrained')
    ReplacedMethod(figure, 'draw', functools.partial(
        _draw, figure, style, formulas))
    return figure


def _draw(figure, style: dict, formulas: bool, draw, renderer) -> None:
    """Draw in the style that was current when the figure was made."""
    from matplotlib import rc_context
    from matplotlib.text import Text
    for text in () if formulas else figure.findobj(Text):
        if '$' in text.get_text() and TICK not in text.get_text():
            text.set_parse_math(False)
    with rc_context(style):  # ticks are made while drawing
        draw(renderer)


def panel_grid(count: int, width: float, height: float, **options) -> tuple:
    """A figure of equal panels, as many side by side as there is room for.

    Args:
        count (int): how many panels.
        width (float): of each, in inches on a screen.
        height (float): likewise.
        **options: of ``Figure.add_subplot``.

    Returns:
        tuple: the Figure and the list of its axes.
    """
    rows = math.ceil(count / int(WIDTH / width))
    columns = math.ceil(count / rows)
    figure = new_figure(columns * width, rows * height)
    return figure, [
        figure.add_subplot(rows, columns, i, **options)
        for i in range(1, count + 1)
    ]


def name_lines(figure, names: list) -> None:
    """A legend below all panels: the look of each model."""
    from matplotlib.lines import Line2D
    legend_below(figure, [
        Line2D([], [], label=n, **look(i)) for i, n in enumerate(names)])


def legend_below(figure, handles: list, length: float = 2.) -> None:
    """One legend for all panels, as wide as the figure allows.

    Args:
        figure (matplotlib.figure.Figure): it is changed.
        handles (list): what it explains.
        length (float): of its lines, in font sizes; dashes need more.
    """
    if not handles:
        return
    longest = max(len(handle.get_label()) for handle in handles)
    column = (.65 * longest + 3.2 + length) * FONT * SMALL / 72
    room = figure.get_figwidth() / size().scale / column
    figure.legend(handles=handles, loc='outside lower center',
                  ncols=max(1, min(len(handles), int(room))),
                  handlelength=length)


def legend_beside(axes) -> None:
    """A legend at the right of a panel, where no data can be."""
    axes.legend(loc='upper left', bbox_to_anchor=(1, 1), borderaxespad=0)


def set_scale(axes, which: str, low: float, high: float) -> None:
    """Scale an axis for values >= 0: from 0, or logarithmic.

    Args:
        axes (matplotlib.axes.Axes): they are changed.
        which (str): x or y.
        low (float): the smallest value.
        high (float): the largest one.
    """
    if 0 < low < high / LINEAR:
        getattr(axes, f'set_{which}scale')('log', subs=[])
        axis = getattr(axes, f'{which}axis')
        axis.get_major_locator().set_params(
            subs=[1, 2, 5] if high < 300 * low else [1])
        axis.set_major_formatter('{x:g}')
    else:
        axes.set(**{f'{which}lim': (0, 1.05 * high or 1.)})


def as_image(figure) -> np.ndarray:
    """A figure as (H, W, 3) RGB, uint8."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def save_figure(figure, path, dpi: int | None = None) -> None:
    """Write a figure, in the format of the suffix; folders are made.

    The same records give the same file, whenever it is written.

    Args:
        figure (matplotlib.figure.Figure): to write.
        path (str | Path): its suffix is a format.
        dpi (int, optional): of pixels; left out, of the current size.

    Raises:
        ValueError: if matplotlib does not know the format.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    date = DATES.get(path.suffix)
    figure.savefig(path, dpi=dpi or size().dpi,
                   metadata={date: None} if date else None)
