"""One style for every figure: sheets in matplotlib's format, and layout.

The sheets hold colours, fonts and lengths. pyplot is imported nowhere, so that
no figure stays open.
"""
import contextlib
import functools
import math
import re
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.style
import numpy as np
from matplotlib import rc_params_from_file, rcParams
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

#: Lengths of each size, as a part of those on a screen.
SIZES = dict(screen=1., print=.8)
THEMES = ('light', 'dark')
#: The widest figure, in inches on a screen; in print 7, the width of a page.
WIDTH = 8.75
#: Points of text on a screen.
FONT = 10
STYLES = ('-', '--', ':', '-.')
MARKERS = ('o', 's', '^', 'D', 'v', 'P', '*', 'X')
#: Of surfaces and of overlays on images: its lightness rises evenly,
#: and colour-blind readers see it as others do.
SURFACE = 'cividis'
#: The start of matplotlib's own tick labels with powers.
TICK = r'$\mathdefault{'
#: The key of the time of writing in a file's metadata, by suffix.
DATES = {'.svg': 'Date', '.pdf': 'CreationDate'}
#: A wider range than this in one figure is drawn on a log scale.
LINEAR = 30

_CURRENT: ContextVar[tuple[str, str]] = ContextVar(
    'style', default=('screen', 'light'))


class Theme(NamedTuple):
    """Colours of a light or a dark page, without the methods' colours."""

    paper: str
    panel: str
    ink: str
    muted: str  # notes, and marks of all others
    grid: str


@contextlib.contextmanager
def use(size: str = 'screen', theme: str = 'light') -> Iterator[None]:
    """Figures made inside have this size and theme.

    Args:
        size (str): ``'screen'``, or ``'print'``: 0.8 of it, 300 dpi.
        theme (str): ``'light'`` or ``'dark'``.
    """
    before = _CURRENT.set((size, theme))
    try:
        with matplotlib.style.context([_lengths(size), _sheet(theme)]):
            yield
    finally:
        _CURRENT.reset(before)


def _sheet(name: str) -> Path:
    return Path(__file__).with_name(f'{name}.mplstyle')


@functools.cache
def _lengths(size: str) -> dict[str, Any]:
    """Parameters of a size; each float in the sheet is a length."""
    params = rc_params_from_file(_sheet('screen'), use_default_template=False)
    scaled = {key: SIZES[size] * value if isinstance(value, float) else value
              for key, value in params.items()}
    return {**scaled, 'savefig.dpi': 300 if size == 'print' else 150}


def styled(draw: Callable) -> Callable:
    """A function that draws in the current style."""

    @functools.wraps(draw)
    def in_style(*args, **kwargs):
        with use(*_CURRENT.get()):
            return draw(*args, **kwargs)

    return in_style


def add_options(parser: ArgumentParser) -> None:
    """Add ``--size`` and ``--theme`` to a figure tool."""
    parser.add_argument(
        '--size', choices=tuple(SIZES), default='screen',
        help='of the figures: for a screen, or for print (300 dpi, at most '
        '7 inches wide); default screen')
    parser.add_argument(
        '--theme', choices=THEMES, default='light',
        help='of the figures, for a light or a dark page; default light')


def theme() -> Theme:
    """Colours of the current style."""
    return Theme(rcParams['figure.facecolor'],
                 rcParams['axes3d.xaxis.panecolor'],
                 rcParams['text.color'], rcParams['axes.edgecolor'],
                 rcParams['grid.color'])


def points(number: float) -> float:
    """A length on a screen, in points or inches -> at the current size."""
    return number * rcParams['font.size'] / FONT


def color(index: int) -> str:
    """Of the model, method or stage with this index."""
    colors = rcParams['axes.prop_cycle'].by_key()['color']
    return colors[index % len(colors)]


def look(index: int) -> dict[str, Any]:
    """Colour and line style; 28 of them differ."""
    return dict(color=color(index), linestyle=STYLES[index % len(STYLES)])


def mark(index: int) -> dict[str, Any]:
    """Colour and marker; 56 of them differ."""
    return dict(color=color(index), marker=MARKERS[index % len(MARKERS)])


class _Figure(Figure):
    """A figure that is drawn in the style in which it was made.

    matplotlib makes ticks while it draws.
    """

    def __init__(self, **options):
        super().__init__(**options)
        self.style = _CURRENT.get()

    def draw(self, renderer):
        """As matplotlib's, but a dollar sign in a name is text."""
        for text in self.findobj(Text):
            if '$' in text.get_text() and TICK not in text.get_text():
                text.set_parse_math(False)
        with use(*self.style):
            super().draw(renderer)


@styled
def new_figure(width: float, height: float) -> Figure:
    """An empty figure in the current style; dollar signs are plain text.

    Args:
        width (float): in inches on a screen, at most :data:`WIDTH`.
        height (float): likewise, without a limit.
    """
    return _Figure(figsize=(points(min(width, WIDTH)), points(height)))


def panel_grid(count: int, width: float, height: float, **options) -> tuple:
    """A figure of equal panels, as many side by side as fit.

    Args:
        count (int): number of panels.
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
    legend_below(figure, [
        Line2D([], [], label=n, **look(i)) for i, n in enumerate(names)])


def legend_below(figure, handles: list) -> None:
    """One legend for all panels, as wide as the figure allows."""
    if not handles:
        return
    longest = max(len(handle.get_label()) for handle in handles)
    column = points((.65 * longest + 5.2) * .833 * FONT / 72)
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
        axis = getattr(axes, f'{which}axis')
        axis.get_major_locator().set_params(
            subs=[1, 2, 5] if high < 300 * low else [1])
        axis.set_major_formatter('{x:g}')
    else:
        axes.set(**{f'{which}lim': (0, 1.05 * high or 1.)})


def as_image(figure) -> np.ndarray:
    """A figure as (H, W, 3) RGB, uint8."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def file_name(label: str) -> str:
    """A label as part of a file's name."""
    return re.sub(r'[^\w.-]+', '_', label).strip('_')


@styled
def save_figure(figure, path, dpi: int | None = None) -> None:
    """Write a figure, in the format of the suffix; folders are made.

    The same records give the same file, at any time.

    Args:
        figure (matplotlib.figure.Figure): to write.
        path (str | Path): its suffix is a format.
        dpi (int, optional): resolution; left out, that of the current size.

    Raises:
        ValueError: if matplotlib does not know the format.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    date = DATES.get(path.suffix)
    figure.savefig(path, dpi=dpi,
                   metadata={date: None} if date else None)
