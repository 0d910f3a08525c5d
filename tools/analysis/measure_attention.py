#!/usr/bin/env python
"""Where the attention heads of a network look, on the data of its own config.

python tools/analysis/measure_attention.py CONFIG CHECKPOINT --query 16 16

For networks of RelativeSelfAttention2d, such as SelfAttentionNet. Prints the
mean attention distance of every head, and writes a record, which
plot_attention.py draws. Without a checkpoint the network is measured at its
start, as training would begin. AttentionMapHook writes the same records while
a network trains.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

from pathlib import Path

import torch

from stepnet_mm.attention import save_attention
from stepnet_mm.launch.entry import (
    build_loader,
    build_model,
    config_from,
    make_config_parser,
    output_of,
)
from stepnet_mm.recording import find_attention_layers
from stepnet_mm.recording.probe import measure_attention, sample_inputs
from stepnet_mm.utils.command_line import output_file, positive


def parse_args():
    parser = make_config_parser(__doc__)
    parser.add_argument('checkpoint', nargs='?', help='weights')
    parser.add_argument(
        '--query', nargs=2, type=int, metavar=('ROW', 'COLUMN'),
        help='pixel of the image as the network takes it; default: its middle')
    parser.add_argument(
        '--image', type=int,
        help='number of the image in the dataset whose attention is drawn; '
        'default: the first of the samples')
    parser.add_argument(
        '--num-samples', type=positive, default=8,
        help='images of the distances, spread over the dataset')
    parser.add_argument(
        '--split', choices=['val', 'test'], default='val', help='of the data')
    parser.add_argument(
        '--layers', help='regular expression for the names of the layers')
    parser.add_argument('--name', help="in figures (default: the config's)")
    parser.add_argument(
        '--out', type=output_file,
        help='the record (default: beside the checkpoint, '
        '<checkpoint>_attention.npz; without one in the work dir)')
    parser.add_argument(
        '--device', default='cuda' if torch.cuda.is_available() else 'cpu',
        help='where it runs (default: cuda where there is one, else cpu)')
    return parser.parse_args()


def trained_iterations(checkpoint):
    """What a checkpoint says of itself; 0 for none and for bare weights."""
    if checkpoint is None:
        return 0
    from mmengine.runner import CheckpointLoader
    content = CheckpointLoader.load_checkpoint(checkpoint, 'cpu')
    return (content.get('meta') or {}).get('iter', 0)


def print_table(record):
    """Mean attention distance by layer, the heads' in order."""
    print(f'mean attention distance, px of the image of {record.size}, '
          f'{record.samples} images')
    for layer in record.layers:
        heads = ' '.join(f'{d:6.2f}' for d in sorted(layer.distance))
        print(f'{layer.name:24} mean {layer.mean_distance:6.2f}  '
              f'heads {heads}')


def main():
    args = parse_args()
    cfg = config_from(args)
    path = output_of(cfg, args, '_attention.npz')
    model = build_model(cfg, args.checkpoint, args.device)
    find_attention_layers(model, args.layers)  # before the data is looked at
    loader = build_loader(cfg, args.split)
    record = measure_attention(
        model, sample_inputs(model, loader, args.num_samples, args.image),
        args.query, args.layers,
        iteration=trained_iterations(args.checkpoint),
        name=args.name or Path(args.config).stem)
    print_table(record)
    save_attention(record, path)
    print(f'record: {path}')


if __name__ == '__main__':
    main()
