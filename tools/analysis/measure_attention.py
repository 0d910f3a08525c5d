#!/usr/bin/env python
"""Where the attention heads of a network look, on the data of its own config.

python tools/analysis/measure_attention.py CONFIG CHECKPOINT --query 16 16

For networks of RelativeSelfAttention2d, such as SelfAttentionNet. Prints the
mean attention distance of every head, and writes a record, which
plot_attention.py draws. Without a checkpoint the network is measured at its
start, as training would begin. Distances are means over 8 images, or
--num-samples. AttentionMapHook writes the same records during training.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

from pathlib import Path

from stepnet_mm.attention import save_attention
from stepnet_mm.launch import entry
from stepnet_mm.recording.probe import measure_attention, sample_inputs

ENDING = '_attention.npz'


def parse_args():
    parser = entry.make_measuring_parser(__doc__, ENDING)
    parser.set_defaults(num_samples=8)
    parser.add_argument(
        '--query', nargs=2, type=int, metavar=('ROW', 'COLUMN'),
        help='pixel of the image as the network takes it; default: its middle')
    parser.add_argument(
        '--image', type=int,
        help='number of the image in the dataset whose attention is drawn; '
        'default: the first of the samples')
    parser.add_argument(
        '--layers', help='regular expression for the names of the layers')
    parser.add_argument('--name', help="in figures (default: the config's)")
    return parser.parse_args()


def trained_iterations(checkpoint):
    """As a checkpoint has them; 0 for none and for bare weights."""
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
    cfg = entry.config_from(args)
    path = entry.output_of(cfg, args, ENDING)
    model = entry.build_model(cfg, args.checkpoint, args.device)
    loader = entry.build_loader(cfg, args.split)
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
