#!/usr/bin/env python
"""Draw where attention heads looked while a network trained.

python tools/analysis/plot_attention.py work_dirs/self_attention_plain_cifar10

maps   each head's attention of the query pixel by layer, at the end (Fig. 4)
paths  the centre of each head's attention, moving over the image
range  mean attention distance by layer and head, and over the iterations
page   attention.html: choose layer, head and query pixel, at the end

From what AttentionMapHook left in a work dir, or from records by name, by
iteration.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import io
from pathlib import Path

import numpy as np
from html_pages import data_url, render, to_base64
from matplotlib import colormaps
from PIL import Image

from stepnet_mm import attention
from stepnet_mm.attention import AttentionRecord, LayerAttention
from stepnet_mm.utils import command_line
from stepnet_mm.utils.files import written_whole
from stepnet_mm.visualization import attention_figures, save_figure, style


def parse_args():
    parser = command_line.command_parser(__doc__)
    parser.add_argument(
        'source', nargs='+', type=Path, help='one work dir, or records (.npz)')
    parser.add_argument(
        '--hook', default='attention', help="the AttentionMapHook's name")
    parser.add_argument(
        '--out', type=command_line.output_folder,
        help='folder; default: beside the first source')
    parser.add_argument('--format', choices=('png', 'svg', 'pdf'),
                        default='png', help='of the figures')
    style.add_options(parser)
    return parser.parse_args()


def read(paths: list[Path]) -> list[AttentionRecord]:
    """The records by iteration, the last one with all its query pixels."""
    iteration = {path: attention.read_attention_record(path).iteration
                 for path in paths}
    *before, last = sorted(paths, key=iteration.get)
    return [*map(attention.read_attention_record, before),
            attention.read_attention_record(last, queries=True)]


def render_attention_page(record: AttentionRecord) -> str:
    """HTML5 of one file: choose layer, head and query pixel.

    It has a byte for each value, in base64: 11 MiB at most, as the records
    leave out query pixels above :data:`.maps.LIMIT`.

    Args:
        record (AttentionRecord): with the attention of all query pixels, as
            ``read_attention_record(path, queries=True)`` gives it.
    """
    colors = colormaps[style.SURFACE](np.arange(256), bytes=True)[:, :3]
    # In grey, so that the colours over it are those of the map.
    image = io.BytesIO()
    Image.fromarray(record.image.mean(2).round().astype('uint8')).save(
        image, 'png')
    data = dict(
        image=data_url(image.getvalue()), query=[*record.query],
        colors=to_base64(colors.tobytes()),
        layers=[_of_layer(number, layer)
                for number, layer in enumerate(record.layers, 1)])
    return render('attention.html', record=record, data=data,
                  title=f'{record.name}: where the heads look')


def _of_layer(number: int, layer: LayerAttention) -> dict:
    maps = layer.queries
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


def main():
    args = parse_args()
    source = args.source[0]
    records = read(attention.attention_files(source, args.hook)
                   if source.is_dir() else args.source)
    print('mean attention distance, px of the image, mean over heads')
    print(command_line.aligned([
        ('iteration', *(f'layer {i}' for i in range(
            1, len(records[-1].layers) + 1))),
        *((str(record.iteration), *(f'{layer.mean_distance:.2f}'
                                    for layer in record.layers))
          for record in records)]))
    out = args.out or (source if source.is_dir() else source.parent)
    with style.use(args.size, args.theme):
        for name, figure in attention_figures(records).items():
            path = out / f'attention_{name}.{args.format}'
            save_figure(figure, path)
            print(f'{name}: {path}')
    page = out / 'attention.html'
    with written_whole(page) as file:
        file.write(render_attention_page(records[-1]).encode())
    print(f'page: {page}')


if __name__ == '__main__':
    main()
