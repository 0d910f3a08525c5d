"""Where attention heads look: Fig. 1 and 4 of Cordonnier et al. 2020."""
import numpy as np

from ..attention import AttentionRecord
from .canvas import look, new_figure, panel_grid

#: Between two heads, as a part of a map's width.
GAP = .12


def attention_map_figure(record: AttentionRecord, title: str = None):
    """Each head's attention of one query pixel (Fig. 4).

    Layers in rows, heads in columns, the nearest-looking first, the query
    pixel framed in black. Each map's largest attention is dark.

    Args:
        record (AttentionRecord): of a network.
        title (str, optional): heading.

    Returns:
        matplotlib.figure.Figure: a row a layer.
    """
    heads = max(len(layer.maps) for layer in record.layers)
    ratio = max(_mosaic_shape(layer, heads) for layer in record.layers)
    width = max(4., 1.15 * heads + .6)
    figure = new_figure(width, (width * ratio + .35) * len(record.layers) + .7)
    rows = figure.subplots(len(record.layers), 1, squeeze=False)[:, 0]
    for axes, layer in zip(rows, record.layers):
        _draw_heads(axes, layer, heads)
    figure.suptitle(title or f'{_name(record)}: attention of a pixel by head '
                    '(columns) and layer (rows),\n'
                    f'mean attention distance in px of the image '
                    f'{record.size[0]} × {record.size[1]}', fontsize=10)
    return figure


def attention_path_figure(records: list, title: str = None):
    """Where each head's attention of the query pixel is centred, in training.

    A line a head, from its first record (dot) to its last (number), over the
    image; the query pixel is the white square.

    Args:
        records (list[AttentionRecord]): of one network, by iteration.
        title (str, optional): heading.

    Returns:
        matplotlib.figure.Figure: a panel a layer.

    Raises:
        ValueError: if the records do not show the same layers and image.
    """
    _check_alike(records)
    last = records[-1]
    figure, panels = panel_grid(len(last.layers), 3., 3.2)
    for i, axes in enumerate(panels):
        _draw_paths(axes, last, [record.layers[i] for record in records])
    figure.suptitle(title or f'{_name(last)}: centre of the attention of a '
                    f'pixel, iteration {records[0].step} to {last.step}')
    return figure


def attention_range_figure(records: list, title: str = None):
    """Mean attention distance by layer and head, and over the iterations.

    Args:
        records (list[AttentionRecord]): of one network, by iteration; one is
            enough, and has no second panel.
        title (str, optional): heading.

    Returns:
        matplotlib.figure.Figure: one panel, or two.

    Raises:
        ValueError: if the records do not show the same layers and image.
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
    figure.suptitle(title or f'{_name(last)}: mean attention distance, '
                    f'{last.samples} images, iteration {last.step}')
    return figure


def _name(record: AttentionRecord) -> str:
    return record.name if len(record.name) < 40 else f'{record.name[:37]}...'


def _mosaic_shape(layer, heads: int) -> float:
    """Height over width of a row of this layer's maps."""
    height, width = layer.maps.shape[1:]
    return height / (width * (heads + GAP * (heads - 1)))


def _draw_heads(axes, layer, heads: int) -> None:
    from matplotlib.patches import Rectangle
    height, width = layer.maps.shape[1:]
    along = width * (1 + GAP)
    for column, head in enumerate(np.argsort(layer.distance, kind='stable')):
        left = column * along
        maps = layer.maps[head]
        axes.imshow(maps / maps.max(), cmap='Reds', vmin=0, vmax=1,
                    extent=(left, left + width, height, 0))
        axes.add_patch(Rectangle((left, 0), width, height, fill=False,
                                 color='grey', linewidth=.6))
        row, place = layer.query
        axes.add_patch(Rectangle((left + place, row), 1, 1, fill=False,
                                 color='black', linewidth=1.2))
        axes.text(left + width / 2, -.04 * height,
                  f'{head + 1}: {layer.distance[head]:.1f} px',
                  ha='center', va='bottom', fontsize=7)
    axes.set(xlim=(-.02 * width, heads * along), ylim=(height * 1.02, 0),
             xticks=[], yticks=[], aspect='equal')
    axes.spines[:].set_visible(False)
    axes.set_ylabel(layer.name, fontsize=8)


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
        axes.annotate(
            str(head + 1), (columns[-1], rows[-1]), fontsize=8, ha='center',
            va='center', bbox=dict(boxstyle='circle,pad=.15', fc='white',
                                   ec=style['color']))
    row, column = layers[-1].place
    axes.plot([column], [row], 's', color='white', markeredgecolor='black')
    axes.set(xlim=(0, width), ylim=(height, 0), xticks=[], yticks=[])
    axes.set_title(layers[-1].name, fontsize=9)


def _draw_ranges(axes, records: list) -> None:
    layers = records[-1].layers
    at = np.arange(1, len(layers) + 1)
    for i, layer in zip(at, layers):
        axes.plot(np.full(len(layer.distance), i), layer.distance, 'o',
                  color=look(0)['color'], alpha=.5,
                  label='head' if i == 1 else None)
    axes.plot(at, [np.mean(layer.distance) for layer in layers], 'k-',
              label='mean')
    if len(records) > 1:
        axes.plot(at, [np.mean(layer.distance)
                       for layer in records[0].layers], 'k--',
                  label=f'mean, iteration {records[0].step}')
    axes.plot(at, [layer.uniform for layer in layers], ':', color='grey',
              label='the same attention everywhere')
    axes.set(xlabel='layer', ylabel='px of the image', xticks=at)
    axes.legend(fontsize=8)


def _draw_history(axes, records: list) -> None:
    steps = [record.step for record in records]
    for i, layer in enumerate(records[-1].layers):
        axes.plot(steps, [np.mean(record.layers[i].distance)
                          for record in records], label=layer.name, **look(i))
    axes.set(xlabel='iteration', ylabel='px of the image, mean over heads')
    axes.legend(fontsize=8)


def _check_alike(records: list) -> None:
    if not records:
        raise ValueError('expected at least one attention record, got none')
    first = _identity(records[0])
    for record in records[1:]:
        if _identity(record) != first:
            raise ValueError(
                'expected records of one network, query and image size, got '
                f'{first} at iteration {records[0].step} and '
                f'{_identity(record)} at iteration {record.step}; draw them '
                'apart')


def _identity(record: AttentionRecord) -> tuple:
    return tuple(record.size), [
        (layer.name, layer.maps.shape, tuple(layer.query))
        for layer in record.layers]
