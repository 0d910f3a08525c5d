"""One style for every picture: sizes, themes, colours, lines, fonts.

Nothing else in the package or its tools sets a colour, a font, a resolution
or an rcParam. matplotlib is imported inside functions, so that this package
stays cheap to import.
"""
import contextlib
import functools
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

#: The widest figure, in inches on a screen; in print it is 7, a page's text.
WIDTH = 8.75
#: Points of text on a screen.
FONT = 10
#: What ticks, legends and notes have of it, matplotlib's own 'small'.
SMALL = .833
STYLES = ('-', '--', ':', '-.')
MARKERS = ('o', 's', '^', 'D', 'v', 'P', '*', 'X')


@dataclass(frozen=True)
class Size:
    """What a picture is for: inches and points are scaled alike."""

    scale: float
    dpi: int


@dataclass(frozen=True)
class Theme:
    """Colours of a light or a dark page."""

    paper: str
    panel: str  # heads of tables
    ink: str
    muted: str  # notes, and what stands for the rest
    grid: str
    colors: tuple[str, ...]
    amounts: str  # the colour map in which 0 looks like paper


SIZES = dict(screen=Size(1., 150), print=Size(.8, 300))
#: Okabe and Ito's colours, which colour-blind readers tell apart, without
#: their yellow, too pale for lines on white. Lighter ones of the same hues,
#: in the same order, on dark.
THEMES = dict(
    light=Theme('#ffffff', '#f2f5f8', '#1c2430', '#6a7482', '#e1e5ea',
                ('#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00',
                 '#56B4E9', '#000000'), 'Blues'),
    dark=Theme('#0d1117', '#1b222c', '#e6edf3', '#8b96a3', '#2b323b',
               ('#4F8EEA', '#E0702E', '#1CCB7E', '#EE96B2', '#F2CF3C',
                '#ABC4FA', '#FFFFFF'), 'Blues_r'))
#: Of surfaces, and of what lies over an image: its lightness rises evenly,
#: and colour-blind readers see it as others do.
SURFACE = 'cividis'

_CURRENT: ContextVar[tuple[str, str]] = ContextVar(
    'style', default=('screen', 'light'))


@contextlib.contextmanager
def use(size: str = 'screen', theme: str = 'light') -> Iterator[None]:
    """Figures made inside have this size and theme.

    Args:
        size (str): ``'screen'``, or ``'print'``: 0.8 of it, 300 dpi.
        theme (str): ``'light'`` or ``'dark'``.

    Raises:
        ValueError: on others.
    """
    for name, value, known in (('size', size, SIZES),
                               ('theme', theme, THEMES)):
        if value not in known:
            raise ValueError(f'{name}: expected one of {list(known)}, got '
                             f'{value!r}; choose one of these')
    before = _CURRENT.set((size, theme))
    try:
        yield
    finally:
        _CURRENT.reset(before)


def add_options(parser: ArgumentParser) -> None:
    """Add ``--size`` and ``--theme`` to a figure tool."""
    parser.add_argument(
        '--size', choices=tuple(SIZES), default='screen',
        help='of the figures: for a screen, or for print (300 dpi, at most '
        '7 inches wide); default screen')
    parser.add_argument(
        '--theme', choices=tuple(THEMES), default='light',
        help='of the figures, for a light or a dark page; default light')


def size() -> Size:
    """The current size."""
    return SIZES[_CURRENT.get()[0]]


def theme() -> Theme:
    """The current theme."""
    return THEMES[_CURRENT.get()[1]]


def points(number: float) -> float:
    """A length in points on a screen -> at the current size."""
    return number * size().scale


def color(index: int) -> str:
    """Of the model, method or stage with this index."""
    colors = theme().colors
    return colors[index % len(colors)]


def look(index: int) -> dict[str, Any]:
    """Colour and line style; 28 of them differ."""
    return dict(color=color(index), linestyle=STYLES[index % len(STYLES)])


def mark(index: int) -> dict[str, Any]:
    """Colour and marker; 56 of them differ."""
    return dict(color=color(index), marker=MARKERS[index % len(MARKERS)])


def text_on(background) -> str:
    """Ink or paper, whichever is read better on a colour of matplotlib."""
    from matplotlib.colors import to_rgb
    light, *others = sorted((theme().ink, theme().paper), reverse=True,
                            key=lambda own: _luma(to_rgb(own)))
    return others[0] if _luma(to_rgb(background)) > .55 else light


def _luma(rgb: tuple) -> float:
    return sum(share * value for share, value in zip((.3, .59, .11), rgb))


def styled(draw: Callable) -> Callable:
    """A function whose picture is in the current style."""

    @functools.wraps(draw)
    def in_style(*args, **kwargs):
        from matplotlib import rc_context
        with rc_context(parameters()):
            return draw(*args, **kwargs)

    return in_style


def parameters() -> dict[str, Any]:
    """matplotlib's rcParams of the current style."""
    return {**_text(), **_lines(), **_colors()}


def _text() -> dict[str, Any]:
    small = ('xtick.labelsize', 'ytick.labelsize', 'legend.fontsize')
    return {
        # matplotlib brings it: the same text on every machine.
        'font.family': 'DejaVu Sans',
        'mathtext.fontset': 'cm',
        'font.size': points(FONT),
        'figure.titlesize': 'large',
        'axes.titlesize': points(9),
        'axes.formatter.useoffset': False,
        'axes.titlepad': points(6),
        'axes.labelpad': points(4),
        'legend.frameon': False,
        'svg.fonttype': 'path',
        'svg.hashsalt': 'stepnet_mm',
        'pdf.fonttype': 42,
        **dict.fromkeys(small, 'small')
    }


def _lines() -> dict[str, Any]:
    ticks = {f'{axis}tick.{key}': points(value) for axis in 'xy'
             for key, value in (('major.size', 3.5), ('minor.size', 2),
                                ('major.width', .8), ('minor.width', .6),
                                ('major.pad', 3.5), ('minor.pad', 3.5))}
    return {
        **ticks,
        'lines.linewidth': points(1.6),
        'lines.markersize': points(5),
        'lines.markeredgewidth': points(1),
        'lines.dashed_pattern': (4, 1.8),
        'lines.dotted_pattern': (1, 1.3),
        'lines.dashdot_pattern': (5, 1.5, 1, 1.5),
        'patch.linewidth': points(1),
        'grid.linewidth': points(.7),
        'axes.linewidth': points(.8),
        'axes.grid': True,
        'axes.axisbelow': True,
        'axes.spines.top': False,
        'axes.spines.right': False,
        'figure.constrained_layout.h_pad': points(3.) / 72,
        'figure.constrained_layout.w_pad': points(3.) / 72
    }


def _colors() -> dict[str, Any]:
    from cycler import cycler
    now = theme()
    inked = ('text.color', 'axes.labelcolor', 'axes.titlecolor',
             'xtick.labelcolor', 'ytick.labelcolor', 'patch.edgecolor')
    lines = ('axes.edgecolor', 'xtick.color', 'ytick.color')
    return {
        **dict.fromkeys(inked, now.ink), **dict.fromkeys(lines, now.muted),
        **dict.fromkeys(('figure.facecolor', 'axes.facecolor'), now.paper),
        'grid.color': now.grid,
        'image.cmap': now.amounts,
        'axes.prop_cycle': cycler(color=now.colors)
    }


def style_sheet() -> str:
    """CSS variables of both themes; what is printed is light."""
    light, dark = map(_variables, THEMES.values())
    return (f':root {{ color-scheme: light dark; {light} }}\n'
            '@media screen and (prefers-color-scheme: dark) '
            f'{{ :root {{ {dark} }} }}\n'
            '@media print { :root { color-scheme: light; } }\n')


def _variables(own: Theme) -> str:
    found = dict(paper=own.paper, panel=own.panel, ink=own.ink,
                 muted=own.muted, grid=own.grid, accent=own.colors[0])
    return ' '.join(f'--{name}: {value};' for name, value in found.items())
