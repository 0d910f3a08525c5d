"""One style for every figure: colours, layout, linear or log axes.

The sheet figures.mplstyle holds colours, fonts and lengths. pyplot is imported
nowhere, so that no figure stays open.
"""
import math
import re
from pathlib import Path
from typing import Any

import matplotlib.style
import numpy as np
from matplotlib import rc_params_from_file
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from ..utils.files import atomic_write

SHEET = rc_params_from_file(Path(__file__).with_name('figures.mplstyle'),
                            use_default_template=False)
#: Colours: of the page, of text, and of notes and the marks of all others.
PAPER, INK, MUTED = [
    SHEET[key] for key in ('figure.facecolor', 'text.color', 'axes.edgecolor')]
COLORS = SHEET['axes.prop_cycle'].by_key()['color']
#: One colour for each method, in every figure.
METHODS = dict(zip(('plain', 'se', 'stepnet', 'cbam', 'constant', 'srm', 'eca',
                    'iebn'), (MUTED, *COLORS)),
               last_gamma='#882255', sem='#44AA99', fca='#332288')
#: The widest figure, in inches.
WIDTH = 8.75
STYLES = ('-', '--', ':', '-.')
#: The start of matplotlib's own tick labels with powers.
TICK = r'$\mathdefault{'
#: The key of the time of writing in a file's metadata, by suffix.
DATES = {'.svg': 'Date', '.pdf': 'CreationDate'}
#: A wider range than this in one figure is drawn on a log scale.
LINEAR = 30

#: A function with this decorator draws in the style; also a context.
styled = matplotlib.style.context(SHEET)


def color(index: int) -> str:
    """Of the model, method or stage with this index."""
    return COLORS[index % len(COLORS)]


def look(index: int) -> dict[str, Any]:
    """Colour and line style; 28 of them differ."""
    return dict(color=color(index), linestyle=STYLES[index % len(STYLES)])


def looks(names: list[str]) -> list[dict[str, Any]]:
    """Colour and line style of each; the colours of methods, if all are."""
    own = [METHODS.get(re.sub(r'_seed\d+$', '', name.lower()))
           for name in names]
    return [dict(look(i), **(dict(color=known) if all(own) else {}))
            for i, known in enumerate(own)]


class _Figure(Figure):
    """Is drawn in the style too, as matplotlib makes ticks while it draws."""

    def draw(self, renderer):
        """As matplotlib's, but a dollar sign in a name is text."""
        for text in self.findobj(Text):
            if '$' in text.get_text() and TICK not in text.get_text():
                text.set_parse_math(False)
        with matplotlib.style.context(SHEET):
            super().draw(renderer)


@styled
def new_figure(width: float, height: float) -> Figure:
    """An empty figure, at most :data:`WIDTH` inches wide.

    Dollar signs are plain text.
    """
    return _Figure(figsize=(min(width, WIDTH), height))


def panel_grid(count: int, width: float, height: float) -> tuple:
    """A figure of equal panels, as many side by side as fit, and its axes.

    Width and height are those of a panel, in inches.
    """
    rows = math.ceil(count / int(WIDTH / width))
    columns = math.ceil(count / rows)
    figure = new_figure(columns * width, rows * height)
    return figure, [figure.add_subplot(rows, columns, i)
                    for i in range(1, count + 1)]


def legend_below(figure, handles: list) -> None:
    """One legend for all panels, as wide as the figure allows."""
    if not handles:
        return
    longest = max(len(handle.get_label()) for handle in handles)
    column = (.65 * longest + 5.2) * .833 * SHEET['font.size'] / 72
    room = int(figure.get_figwidth() / column)
    figure.legend(handles=handles, loc='outside lower center',
                  ncols=max(1, min(len(handles), room)))


def legend_beside(axes) -> None:
    """A legend at the right of a panel, where no data can be."""
    axes.legend(loc='upper left', bbox_to_anchor=(1, 1), borderaxespad=0)


def set_scale(axes, which: str, low: float, high: float) -> None:
    """Scale the x or y axis for values >= 0: from 0, or logarithmic."""
    if 0 < low < high / LINEAR:
        getattr(axes, f'set_{which}scale')('log', subs=[])
        log_ticks(getattr(axes, f'{which}axis'), low, high)
    else:
        axes.set(**{f'{which}lim': (0, 1.05 * high or 1.)})


def log_ticks(axis, low: float, high: float) -> None:
    """Label 1, 2 and 5 of each decade, or of many decades the first."""
    axis.get_major_locator().set_params(
        subs=[1, 2, 5] if high < 300 * low else [1])
    axis.set_major_formatter('{x:g}')


def as_image(figure) -> np.ndarray:
    """A figure as (H, W, 3) RGB, uint8."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


@styled
def save_figure(figure, path) -> Path:
    """Write a figure whole, in the format of the suffix; folders are made.

    The same records give the same file, at any time.

    Args:
        figure (matplotlib.figure.Figure): to write.
        path (str | Path): its suffix is a format; without one a PNG.

    Returns:
        Path: of the file.

    Raises:
        ValueError: if matplotlib does not know the format.
    """
    path = Path(path)
    path = path if path.suffix else path.with_name(f'{path.name}.png')
    date = DATES.get(path.suffix)
    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix[1:],
                       metadata={date: None} if date else None)
    return path
