"""Where attention heads look: Fig. 1 and 4 of Cordonnier et al. 2020."""
import math
from textwrap import fill

import numpy as np

from ..attention import AttentionRecord
from .style import INK, MUTED, color, legend_beside, look, new_figure, styled

#: Heads side by side; further ones go into a further line.
MOST = 9
#: Height of a map's label, and of the tallest map, in inches.
LABEL, TALLEST = .24, 3.


@styled
def attention_figures(records: list) -> dict:
    """Both figures of a training.

    ``maps``: each head's attention of one query pixel in the last record
    (Fig. 4). Layers in rows, heads in columns, the nearest-looking first, the
    query pixel framed in orange. Where attention is zero a map looks like
    paper, and its largest attention is darkest.

    ``range``: mean attention distance by layer and head, and below it over
    the iterations, where there are several.

    Args:
        records (list[AttentionRecord]): of one network, by iteration.

    Returns:
        dict[str, matplotlib.figure.Figure]: by name.

    Raises:
        ValueError: if layers, query or images differ.
    """
    _check_alike(records)
    last = records[-1]
    start = f'{last.name}, iteration {last.iteration}:'
    headings = dict(
        maps=f'{start} attention of pixel {tuple(last.query)} of '
        f'{last.size[0]} × {last.size[1]} by layer (rows) and head (columns, '
        'with its mean attention distance in px)',
        range=f'{start} mean attention distance, {last.samples} images')
    figures = dict(maps=_map_figure(last), range=_range_figure(records))
    for name, figure in figures.items():
        figure.suptitle(
            fill(headings[name], int(11 * figure.get_figwidth())),
            fontsize='medium')
    return figures


def _map_figure(record: AttentionRecord):
    columns = min(max(len(layer.maps) for layer in record.layers), MOST)
    lines = [math.ceil(len(layer.maps) / columns) for layer in record.layers]
    height, width = record.layers[0].maps.shape[1:]
    inch = max(5., columns + .2) / columns
    tall = min(inch * height / width, TALLEST)
    figure = new_figure(inch * columns, sum(
        (tall + LABEL) * count + .3 for count in lines) + .6)
    parts = figure.subfigures(len(lines), squeeze=False, height_ratios=lines)
    for i, (part, layer, count) in enumerate(
            zip(parts[:, 0], record.layers, lines), 1):
        part.suptitle(f'layer {i}: {layer.name}', x=0, ha='left',
                      fontsize='small')
        panels = part.subplots(count, columns, squeeze=False)
        _draw_heads(panels.ravel(), layer)
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


def _draw_heads(panels, layer) -> None:
    """One layer's maps, each with the head's number and its distance."""
    row, place = layer.query
    order = np.argsort(layer.distance, kind='stable')
    for axes, head in zip(panels, order):
        axes.imshow(layer.maps[head], vmin=0)
        axes.plot([place], [row], 's', color=color(1), fillstyle='none')
        axes.set_title(f'{head + 1}: {layer.distance[head]:.1f} px',
                       fontsize='small', pad=2)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(True)
    for axes in panels[len(order):]:
        axes.set_axis_off()


def _draw_ranges(axes, records: list) -> None:
    first, last = records[0], records[-1]
    at = np.arange(1, len(last.layers) + 1)
    for i, layer in zip(at, last.layers):
        axes.plot(np.full(len(layer.distance), i), layer.distance, 'o',
                  color=color(0), alpha=.5, label='head' if i == 1 else None)
    axes.plot(at, [layer.mean_distance for layer in last.layers],
              label='mean', color=INK)
    if len(records) > 1:
        axes.plot(at, [layer.mean_distance for layer in first.layers], '--',
                  label=f'mean, iteration {first.iteration}', color=INK)
    axes.plot(at, [layer.uniform for layer in last.layers], ':',
              color=MUTED, label='uniform attention')
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
