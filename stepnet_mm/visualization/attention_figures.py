"""Where attention heads look: Fig. 1 and 4 of Cordonnier et al. 2020."""
from textwrap import fill

import numpy as np

from ..attention import AttentionRecord
from .canvas import look, new_figure, panel_grid

#: Between two heads, as a part of a map's width.
GAP = .12


def attention_figures(records: list, title: str | None = None) -> dict:
    """All figures of a training, ``maps``, ``paths`` and ``range``.

    Args:
        records (list[AttentionRecord]): of one network, by iteration.
        title (str, optional): heading of each.

    Raises:
        ValueError: if the records are not of the same layers, query and
            images.
    """
    _check_alike(records)
    return dict(
        maps=attention_map_figure(records[-1], title),
        paths=attention_path_figure(records, title),
        range=attention_range_figure(records, title))


def attention_map_figure(record: AttentionRecord, title: str | None = None):
    """Each head's attention of one query pixel (Fig. 4).

    Layers in rows, heads in columns, the nearest-looking first, the query
    pixel framed in black. Each map's largest attention is dark.

    Args:
        record (AttentionRecord): of a network.
        title (str, optional): heading.

    Returns:
        matplotlib.figure.Figure: a row per layer.
    """
    heads = max(len(layer.maps) for layer in record.layers)
    width = max(6., 1.15 * heads + .4)
    heights = [width * _height_of_row(layer, heads) + .55
               for layer in record.layers]
    figure = new_figure(width, sum(heights) + .8)
    rows = figure.subplots(len(record.layers), 1, squeeze=False,
                           height_ratios=heights)[:, 0]
    for number, (axes, layer) in enumerate(zip(rows, record.layers), 1):
        _draw_heads(axes, layer, heads, 72 * width)
        axes.set_title(f'layer {number}: {layer.name}', loc='left',
                       fontsize=8, pad=14)
    _head(figure, title or f'{record.name}, iteration {record.iteration}: '
          f'attention of pixel {_query(record)} by layer '
          '(rows) and head (columns, with its mean attention distance in px)')
    return figure


def attention_path_figure(records: list, title: str | None = None):
    """Where each head's attention of the query pixel is centred, in training.

    A line per head, from its first record (dot) to its last (cross, with its
    number), over the image; the query pixel is the white square.

    Args:
        records (list[AttentionRecord]): of one network, by iteration.
        title (str, optional): heading.

    Returns:
        matplotlib.figure.Figure: a panel per layer.

    Raises:
        ValueError: if the records are not of the same layers, query and
            images.
    """
    _check_alike(records)
    last = records[-1]
    height, width = last.size
    figure, panels = panel_grid(
        len(last.layers), 3., 3. * min(2., height / width) + .3)
    for i, axes in enumerate(panels):
        _draw_paths(axes, last, [record.layers[i] for record in records])
        axes.set_title(f'layer {i + 1}: {last.layers[i].name}', fontsize=9)
    _head(figure, title or f'{last.name}: centre of the attention of pixel '
          f'{_query(last)} by head, iteration '
          f'{records[0].iteration} (dot) to {last.iteration} (cross)')
    return figure


def attention_range_figure(records: list, title: str | None = None):
    """Mean attention distance by layer and head, and over the iterations.

    Args:
        records (list[AttentionRecord]): of one network, by iteration; one is
            enough, and has no second panel.
        title (str, optional): heading.

    Returns:
        matplotlib.figure.Figure: one panel, or two.

    Raises:
        ValueError: if the records are not of the same layers, query and
            images.
    """
    _check_alike(records)
    last, several = records[-1], len(records) > 1
    figure = new_figure(10 if several else 5.5, 4)
    panels = figure.subplots(1, 2 if several else 1, squeeze=False)[0]
    _draw_ranges(panels[0], records)
    if several:
        _draw_history(panels[1], records)
    for axes in panels:
        axes.set_ylim(bottom=0)
        axes.grid(alpha=.3)
    _head(figure, title or f'{last.name}, iteration {last.iteration}: mean '
          f'attention distance, {last.samples} images')
    return figure


def _head(figure, title: str) -> None:
    """A heading, broken at the figure's width and at any place."""
    figure.suptitle(fill(title, int(11 * figure.get_figwidth())), fontsize=10)


def _query(record: AttentionRecord) -> str:
    (row, column), (height, width) = record.query, record.size
    return f'({row}, {column}) of {height} × {width}'


def _height_of_row(layer, heads: int) -> float:
    """Of this layer's maps side by side: height over width."""
    height, width = layer.maps.shape[1:]
    return height / (width * (heads + GAP * (heads - 1)))


def _draw_heads(axes, layer, heads: int, points: float) -> None:
    """One layer's maps; ``points`` is the figure's width."""
    from matplotlib.patches import Rectangle
    height, width = layer.maps.shape[1:]
    along = width * (1 + GAP)
    mark = max(4., points / (heads * along))
    for column, head in enumerate(np.argsort(layer.distance, kind='stable')):
        left = column * along
        maps = layer.maps[head]
        axes.imshow(maps / maps.max(), cmap='Reds', vmin=0, vmax=1,
                    extent=(left, left + width, height, 0))
        axes.add_patch(Rectangle((left, 0), width, height, fill=False,
                                 color='grey', linewidth=.6))
        row, place = layer.query
        axes.plot([left + place + .5], [row + .5], 's', color='black',
                  fillstyle='none', markersize=mark)
        axes.text(left + width / 2, -.04 * height,
                  f'{head + 1}: {layer.distance[head]:.1f} px',
                  ha='center', va='bottom', fontsize=7)
    axes.set(xlim=(-.02 * width, heads * along), ylim=(height * 1.02, 0),
             xticks=[], yticks=[], aspect='equal')
    axes.spines[:].set_visible(False)


def _draw_paths(axes, last: AttentionRecord, layers: list) -> None:
    height, width = last.size
    grey = last.image.mean(2)
    axes.imshow(grey, cmap='gray', vmin=-120, vmax=255,
                extent=(0, width, height, 0))
    centers = np.stack([layer.centers for layer in layers])
    for head in range(centers.shape[1]):
        rows, columns = centers[:, head].T
        style = look(head)
        axes.plot(columns, rows, linewidth=1.3, **style)
        axes.plot(columns[:1], rows[:1], '.', color=style['color'])
        axes.plot(columns[-1:], rows[-1:], 'X', color=style['color'],
                  markeredgecolor='white', markeredgewidth=.4, markersize=6)
        axes.annotate(
            str(head + 1), (columns[-1], rows[-1]), (4, 3), fontsize=7,
            textcoords='offset points', path_effects=_halo())
    row, column = layers[-1].place
    axes.plot([column], [row], 's', color='white', markeredgecolor='black',
              markersize=5)
    axes.set(xlim=(0, width), ylim=(height, 0), xticks=[], yticks=[])


def _halo() -> list:
    """A white edge, which makes text legible over anything."""
    from matplotlib.patheffects import withStroke
    return [withStroke(linewidth=2, foreground='white')]


def _draw_ranges(axes, records: list) -> None:
    layers = records[-1].layers
    at = np.arange(1, len(layers) + 1)
    for i, layer in zip(at, layers):
        axes.plot(np.full(len(layer.distance), i), layer.distance, 'o',
                  color=look(0)['color'], alpha=.5,
                  label='head' if i == 1 else None)
    axes.plot(at, [layer.mean_distance for layer in layers], 'k-',
              label='mean')
    if len(records) > 1:
        axes.plot(at, [layer.mean_distance
                       for layer in records[0].layers], 'k--',
                  label=f'mean, iteration {records[0].iteration}')
    axes.plot(at, [layer.uniform for layer in layers], ':', color='grey',
              label='the same attention everywhere')
    axes.set(xlabel='layer', ylabel='px of the image', xticks=at)
    axes.legend(fontsize=8)


def _draw_history(axes, records: list) -> None:
    iterations = [record.iteration for record in records]
    for i in range(len(records[-1].layers)):
        axes.plot(iterations, [record.layers[i].mean_distance
                          for record in records],
                  label=f'layer {i + 1}', **look(i))
    axes.set(xlabel='iteration', ylabel='px of the image, mean over heads')
    axes.legend(fontsize=8)


def _check_alike(records: list) -> None:
    if not records:
        raise ValueError(
            'records: expected at least one attention record, got none')
    first = records[0].view
    for record in records[1:]:
        other = [key for key, value in record.view.items()
                 if value != first[key]]
        if other:
            raise ValueError(
                'records: expected the same layers, query and images, got '
                f'others at iteration {records[0].iteration} and '
                f'{record.iteration}: '
                f'{[first[key] for key in other]} and '
                f'{[record.view[key] for key in other]} as {other}; draw them '
                'apart')
