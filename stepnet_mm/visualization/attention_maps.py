"""Where attention heads look: Fig. 1 and 4 of Cordonnier et al. 2020."""
import math
from textwrap import fill
from typing import NamedTuple

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke

from ..attention import AttentionRecord
from .style import (
    WIDTH,
    color,
    legend_below,
    legend_beside,
    look,
    mark,
    new_figure,
    panel_grid,
    points,
    styled,
    theme,
)

#: Between two heads, as a part of a map's width.
GAP = .12
#: Heads side by side; further ones go into a further line.
MOST = 9
#: Of a map's label, and of the tallest map, in inches on a screen.
LABEL, TALLEST = .24, 3.


@styled
def attention_figures(records: list, title: str | None = None) -> dict:
    """All figures of a training.

    ``maps``: each head's attention of one query pixel in the last record
    (Fig. 4). Layers in rows, heads in columns, the nearest-looking first, the
    query pixel framed in orange. Where attention is zero a map looks like
    paper, and its largest attention is darkest (on a dark page, brightest).

    ``paths``: where each head's attention of the query pixel is centred, a
    panel per layer. A line per head, from its first record (dot) to its last
    (the mark in the legend), over the image; the query pixel is the empty
    square.

    ``range``: mean attention distance by layer and head, and below it over
    the iterations, where there are several.

    Args:
        records (list[AttentionRecord]): of one network, by iteration.
        title (str, optional): heading of each.

    Returns:
        dict[str, matplotlib.figure.Figure]: by name.

    Raises:
        ValueError: if layers, query or images differ.
    """
    _check_alike(records)
    last = records[-1]
    headings = dict(
        maps=f'{last.name}, iteration {last.iteration}: attention of pixel '
        f'{_query(last)} by layer (rows) and head (columns, with its mean '
        'attention distance in px)',
        paths=f'{last.name}: centre of the attention of pixel {_query(last)} '
        f'by head, iteration {records[0].iteration} (dot) to '
        f'{last.iteration} (mark)',
        range=f'{last.name}, iteration {last.iteration}: mean attention '
        f'distance, {last.samples} images')
    figures = dict(maps=_map_figure(last), paths=_path_figure(records),
                   range=_range_figure(records))
    for name, figure in figures.items():
        figure.suptitle(
            _broken(title or headings[name],
                    figure.get_figwidth() / points(1)), fontsize='medium')
    return figures


def _map_figure(record: AttentionRecord):
    heads = max(len(layer.maps) for layer in record.layers)
    columns = min(heads, MOST)
    width = min(WIDTH, max(5., columns + .2))
    grids = [_grid(layer, columns, width) for layer in record.layers]
    heights = [grid.lines * grid.down / grid.inch + .3 for grid in grids]
    figure = new_figure(width, sum(heights) + .6)
    rows = figure.subplots(len(grids), 1, squeeze=False,
                           height_ratios=heights)[:, 0]
    for i, (axes, layer, grid) in enumerate(zip(rows, record.layers, grids)):
        _draw_heads(axes, layer, grid)
        axes.set_title(f'layer {i + 1}: {layer.name}', loc='left')
    return figure


def _path_figure(records: list):
    last = records[-1]
    height, width = last.size
    figure, panels = panel_grid(
        len(last.layers), 2.8, 2.8 * min(2., height / width) + .4)
    for i, axes in enumerate(panels):
        _draw_paths(axes, last, [record.layers[i] for record in records])
        axes.set_title(_broken(f'layer {i + 1}: {last.layers[i].name}', 2.8))
    legend_below(figure, [
        Line2D([], [], label=f'head {i + 1}', **{**mark(i), **look(i)})
        for i in range(max(len(layer.maps) for layer in last.layers))])
    return figure


def _range_figure(records: list):
    several = len(records) > 1
    figure = new_figure(8, 6.2 if several else 3.4)
    panels = figure.subplots(2 if several else 1, squeeze=False)[:, 0]
    _draw_ranges(panels[0], records)
    if several:
        _draw_history(panels[1], records)
    for axes in panels:
        low, high = axes.dataLim.intervaly
        if low < high / 2:  # else half of the panel would be empty
            axes.set_ylim(bottom=0)
        legend_beside(axes)
    return figure


def _broken(text: str, width: float) -> str:
    """Lines of text for a width in inches on a screen."""
    return fill(text, int(11 * width))


def _query(record: AttentionRecord) -> str:
    (row, column), (height, width) = record.query, record.size
    return f'({row}, {column}) of {height} × {width}'


class Grid(NamedTuple):
    """Where the maps of a layer stand; lengths in pixels of a map."""

    columns: int
    lines: int
    along: float  # from one map to the next
    down: float  # from one line to the next
    inch: float  # on a screen


def _grid(layer, columns: int, room: float) -> Grid:
    height, width = layer.maps.shape[1:]
    each = min(room / columns / (1 + GAP), TALLEST * width / height)
    inch = width / each
    return Grid(columns, math.ceil(len(layer.maps) / columns),
                max(width * (1 + GAP), .75 * inch), height + LABEL * inch,
                inch)


def _draw_heads(axes, layer, grid: Grid) -> None:
    """One layer's maps, with the head's number and its distance."""
    height, width = layer.maps.shape[1:]
    row, place = layer.query
    order = np.argsort(layer.distance, kind='stable')
    for number, head in enumerate(order):
        line, column = divmod(number, grid.columns)
        left, top = column * grid.along, line * grid.down
        axes.imshow(layer.maps[head], vmin=0, vmax=layer.maps[head].max(),
                    extent=(left, left + width, top + height, top))
        axes.add_patch(Rectangle((left, top), width, height, fill=False,
                                 color=theme().muted, linewidth=points(.6)))
        axes.plot([left + place + .5], [top + row + .5], 's', color=color(1),
                  fillstyle='none',
                  markersize=points(max(4., 72 / grid.inch)))
        axes.text(left + width / 2, top - .04 * height,
                  f'{head + 1}: {layer.distance[head]:.1f} px',
                  ha='center', va='bottom', fontsize='small')
    axes.set(xlim=(-.02 * width, grid.columns * grid.along),
             ylim=(grid.lines * grid.down - .9 * LABEL * grid.inch,
                   -LABEL * grid.inch),
             xticks=[], yticks=[], aspect='equal', anchor='W')
    axes.spines[:].set_visible(False)


def _draw_paths(axes, last: AttentionRecord, layers: list) -> None:
    height, width = last.size
    axes.imshow(last.image.mean(2), cmap='gray', vmin=0, vmax=255, alpha=.4,
                extent=(0, width, height, 0))
    # An edge like paper, to set a line off from anything.
    halo = [withStroke(linewidth=points(3), foreground=theme().paper)]
    centers = np.stack([layer.centers for layer in layers])
    for head in range(centers.shape[1]):
        rows, columns = centers[:, head].T
        axes.plot(columns, rows, path_effects=halo, **look(head))
        axes.plot(columns[:1], rows[:1], '.', color=color(head))
        axes.plot(columns[-1:], rows[-1:], markersize=points(7),
                  markeredgecolor=theme().paper, **mark(head))
    row, column = layers[-1].place
    axes.plot([column], [row], 's', color=theme().paper,
              markeredgecolor=theme().ink)
    axes.set(xlim=(0, width), ylim=(height, 0), xticks=[], yticks=[])


def _draw_ranges(axes, records: list) -> None:
    first, last = records[0], records[-1]
    at = np.arange(1, len(last.layers) + 1)
    ink = dict(color=theme().ink)
    for i, layer in zip(at, last.layers):
        axes.plot(np.full(len(layer.distance), i), layer.distance, 'o',
                  color=color(0), alpha=.5, label='head' if i == 1 else None)
    axes.plot(at, [layer.mean_distance for layer in last.layers],
              label='mean', **ink)
    if len(records) > 1:
        axes.plot(at, [layer.mean_distance for layer in first.layers], '--',
                  label=f'mean, iteration {first.iteration}', **ink)
    axes.plot(at, [layer.uniform for layer in last.layers], ':',
              color=theme().muted, label='uniform attention')
    axes.set(xlabel='layer', ylabel='px of the image', xticks=at)


def _draw_history(axes, records: list) -> None:
    iterations = [record.iteration for record in records]
    for i in range(len(records[-1].layers)):
        axes.plot(iterations, [record.layers[i].mean_distance
                          for record in records],
                  label=f'layer {i + 1}', **look(i))
    axes.set(xlabel='iteration', ylabel='px of the image, mean')


def _check_alike(records: list) -> None:
    first = records[0]
    for record in records[1:]:
        for key, found in record.view.items():
            if found != first.view[key]:
                raise ValueError(
                    f'records: expected one {key}, got {first.view[key]} and '
                    f'{found} at iterations {first.iteration} and '
                    f'{record.iteration}; draw them apart')
