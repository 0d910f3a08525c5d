#!/usr/bin/env python
"""Draw where attention heads looked while a network trained.

python tools/analysis/plot_attention.py work_dirs/self_attention_plain_cifar10

maps   each head's attention of the query pixel by layer, at the end (Fig. 4)
paths  the centre of each head's attention, moving over the image
range  mean attention distance by layer and head, and over the iterations
page   attention.html: choose layer, head and query pixel, at the end

From what AttentionMapHook left in a work dir, or from records by name
(measure_attention.py), by iteration.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

from pathlib import Path

from attention_page import render_attention_page

from stepnet_mm.attention import attention_files, read_attention_record
from stepnet_mm.utils.command_line import command_parser, output_folder
from stepnet_mm.utils.files import written_whole
from stepnet_mm.visualization import (
    attention_figures,
    save_figure,
    style,
)


def parse_args():
    parser = command_parser(__doc__)
    parser.add_argument(
        'source', nargs='+', type=Path, help='one work dir, or records (.npz)')
    parser.add_argument(
        '--hook', default='attention', help="the AttentionMapHook's name")
    parser.add_argument(
        '--iteration', type=int, help='the last one to draw; default: all')
    parser.add_argument(
        '--out', type=output_folder,
        help='folder; default: beside the first source')
    parser.add_argument('--format', choices=('png', 'svg', 'pdf'),
                        default='png', help='of the figures')
    parser.add_argument('--title', help='heading of every figure and the page')
    style.add_options(parser)
    return parser.parse_args()


def read(args):
    """The records by iteration, the last one with all its query pixels."""
    paths = args.source
    if len(paths) == 1 and paths[0].is_dir():
        paths = attention_files(paths[0], args.hook)
    found = sorted(((read_attention_record(path), path) for path in paths),
                   key=lambda pair: pair[0].iteration)
    iterations = [record.iteration for record, _ in found]
    if args.iteration is not None:
        if args.iteration not in iterations:
            raise ValueError('--iteration: expected one that was recorded, '
                             f'{iterations}, got {args.iteration}; name one')
        found = found[:iterations.index(args.iteration) + 1]
    *before, (_, last) = found
    return [*(record for record, _ in before),
            read_attention_record(last, queries=True)]


def print_table(records):
    """Mean attention distance by layer, its mean over heads."""
    print('mean attention distance, px of the image, mean over heads')
    layers = range(1, len(records[-1].layers) + 1)
    print('  '.join(['iteration', *(f'{f"layer {i}":>9}' for i in layers)]))
    for record in records:
        means = [f'{layer.mean_distance:>9.2f}' for layer in record.layers]
        print('  '.join([f'{record.iteration:>9}', *means]))


def save_page(record, path, title):
    """The page beside the figures."""
    with written_whole(path) as file:
        file.write(render_attention_page(record, title).encode())
    print(f'page: {path}')


def main():
    args = parse_args()
    records = read(args)
    source = args.source[0]
    out = args.out or (source if source.is_dir() else source.parent)
    with style.use(args.size, args.theme):
        figures = attention_figures(records, args.title)
        print_table(records)
        for name, figure in figures.items():
            path = out / f'attention_{name}.{args.format}'
            save_figure(figure, path)
            print(f'{name}: {path}')
    save_page(records[-1], out / 'attention.html', args.title)


if __name__ == '__main__':
    main()
