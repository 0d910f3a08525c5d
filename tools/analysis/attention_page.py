"""One HTML page that shows where the heads look from any query pixel."""
import io

import numpy as np
from html_pages import data_url, render, to_base64
from matplotlib import colormaps

from stepnet_mm.attention import AttentionRecord, LayerAttention
from stepnet_mm.visualization.style import SURFACE


def render_attention_page(record: AttentionRecord,
                          title: str | None = None) -> str:
    """The page: choose layer, head and query pixel.

    It has a byte for each value, in base64: 11 MiB at most, as the records
    leave out query pixels above :data:`.query_maps.LIMIT`. The image comes on
    top, as a PNG of one channel.

    Args:
        record (AttentionRecord): with the attention of all query pixels, as
            ``read_attention_record(path, queries=True)`` gives it.
        title (str, optional): heading.

    Returns:
        str: HTML5 that needs no other file, no server and no network.

    Raises:
        ValueError: if the record was read without them.
    """
    return render('attention.html', record=record, data=_data(record),
                  title=title or f'{record.name}: where the heads look')


def _data(record: AttentionRecord) -> dict:
    colors = colormaps[SURFACE](np.arange(256), bytes=True)[:, :3]
    return dict(
        image=_picture(record.image), query=[*record.query],
        colors=to_base64(colors.tobytes()),
        layers=[_of_layer(number, layer)
                for number, layer in enumerate(record.layers, 1)])


def _of_layer(number: int, layer: LayerAttention) -> dict:
    maps = layer.queries
    if maps is None:
        raise ValueError(
            f'{layer.name}: expected the attention of all query pixels, got '
            'one of them; read the record with queries=True')
    return dict(
        name=f'{number}: {layer.name}',
        heads=[f'{i} ({distance:.1f} px)'
               for i, distance in enumerate(layer.distance, 1)],
        order=np.argsort(layer.distance, kind='stable').tolist(),
        shape=maps.levels.shape[3:], pixel=[*layer.pixel],
        padding=[*layer.padding],
        queries=[maps.rows.tolist(), maps.columns.tolist()],
        levels=to_base64(maps.levels.tobytes()),
        largest=to_base64(maps.largest.astype('<f4').tobytes()))


def _picture(image: np.ndarray) -> str:
    """An image in grey, so that the colours over it are those of the map."""
    from PIL import Image  # matplotlib needs it too
    buffer = io.BytesIO()
    grey = image.mean(2).round().astype('uint8')
    Image.fromarray(grey).save(buffer, 'png')
    return data_url(buffer.getvalue())
