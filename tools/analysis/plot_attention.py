#!/usr/bin/env python
"""Draw where attention heads looked while a network trained.

python tools/analysis/plot_attention.py work_dirs/self_attention_plain_cifar10

maps   each head's attention of the query pixel by layer, at the end (Fig. 4)
range  mean attention distance by layer and head, and over the iterations

From what AttentionMapHook left in a work dir, or from records by name, by
iteration.
"""
import stepnet_mm.utils.interrupts  # Ctrl-C from here on

from pathlib import Path

from stepnet_mm.attention import read_attention_history, read_attention_record
from stepnet_mm.utils import command_line
from stepnet_mm.visualization import attention_figures, save_figure


def parse_args():
    parser = command_line.command_parser(__doc__)
    parser.add_argument(
        'source', nargs='+', type=Path, help='one work dir, or records (.npz)')
    parser.add_argument(
        '--hook', default='attention', help="the AttentionMapHook's name")
    parser.add_argument(
        '--out', type=Path,
        help='folder; default: beside the first source')
    parser.add_argument('--format', choices=('png', 'svg', 'pdf'),
                        default='png', help='of the figures')
    return parser.parse_args()


def main():
    args = parse_args()
    source = args.source[0]
    records = sorted(
        read_attention_history(source, args.hook) if source.is_dir()
        else map(read_attention_record, args.source),
        key=lambda record: record.iteration)
    print('mean attention distance, px of the image, mean over heads')
    print(command_line.aligned([
        ('iteration', *(f'layer {i}' for i in range(
            1, len(records[-1].layers) + 1))),
        *((str(record.iteration), *(f'{layer.mean_distance:.2f}'
                                    for layer in record.layers))
          for record in records)]))
    out = args.out or (source if source.is_dir() else source.parent)
    for name, figure in attention_figures(records).items():
        path = out / f'attention_{name}.{args.format}'
        save_figure(figure, path)
        print(f'{name}: {path}')


if __name__ == '__main__':
    main()
