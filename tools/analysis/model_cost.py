#!/usr/bin/env python
"""Parameters, FLOPs, latency and memory of a config's model, by stage.

The model is built with random weights: nothing is loaded or downloaded.
OMP_NUM_THREADS sets the threads on a CPU.

python tools/analysis/model_cost.py configs/faster_rcnn_r50_stepnet.py

FLOPs are mmengine's, of one image in a forward pass (mode='tensor') in eval
mode; a multiply-add is one. The operators listed as not counted are most of a
step-size or attention module: compare the latency. FLOPs of a RoI head grow
with the number of regions, which random weights propose here.
"""
import stepnet_mm.utils.interrupts  # Ctrl-C from here on

from collections import Counter
from functools import partial

import torch
from mmengine.analysis import FlopAnalyzer, parameter_count
from mmengine.analysis.print_helper import complexity_stats_table
from torch.utils.benchmark import Timer

import stepnet_mm  # registers modules
from stepnet_mm import config
from stepnet_mm.config.lookup import all_dicts
from stepnet_mm.launch.entry import build_model
from stepnet_mm.steps.base import step_sizes_of
from stepnet_mm.utils.command_line import command_parser, positive

#: The image edge in px where a config names none.
EDGE = 224


def parse_args():
    parser = command_parser(__doc__)
    parser.add_argument('config', help='config file')
    parser.add_argument(
        '--image-size', nargs=2, type=positive, metavar=('H', 'W'),
        help='px; a detector at its full size takes long on a CPU (default: '
        f"the pipelines' size in the config, else {EDGE} {EDGE})")
    parser.add_argument(
        '--batch-size', type=positive, default=1, help='of the timed runs')
    parser.add_argument('--device', default='cpu', help='cpu, cuda, cuda:1')
    parser.add_argument(
        '--cfg-options', nargs='+', action=config.OptionsAction,
        help='changes to the config, key=value; lists as key="[a,b]"')
    return parser.parse_args()


def image_size(cfg):
    """Height and width in px of a config's images: the last crop or resize of
    the first pipeline that has one, of test, validation, training.
    """
    for name in config.EVALUATION[::-1] + config.TRAIN:
        node = cfg.get(name)
        node = node if isinstance(node, dict) else {}  # or a list of loaders
        while 'pipeline' not in node and isinstance(node.get('dataset'), dict):
            node = node['dataset']
        for transform in reversed(node.get('pipeline') or []):
            edges = transform.get('crop_size') or transform.get('scale')
            if isinstance(edges, int):
                return edges, edges
            if isinstance(edges, (list, tuple)) and all(
                    isinstance(edge, int) for edge in edges):
                width, height = edges
                return height, width
    return EDGE, EDGE


def prepare(cfg, size, batch_size, device):
    """A network in eval mode without its ``init_cfg``, and random images.

    They have a height and a width in px, and are padded as it asks.
    """
    model = build_model(cfg, device=device, start=False)
    backbones = [node['backbone'] for node in all_dicts(cfg.model)
                 if isinstance(node.get('backbone'), dict)]
    channels = backbones[0].get('in_channels', 3) if backbones else 3
    if config.library_of(cfg) == 'mmpretrain':
        return model, torch.randn(batch_size, channels, *size, device=device)
    from mmdet.testing import demo_mm_inputs
    packed = model.data_preprocessor(demo_mm_inputs(
        batch_size, (channels, *size), device=device))
    model.forward = partial(model.forward, data_samples=packed['data_samples'])
    return model, packed['inputs']


def print_latency(model, images):
    """The time of a forward pass, and on a GPU the peak memory."""
    timer = Timer('model(images)', num_threads=torch.get_num_threads(),
                  globals=dict(model=model, images=images))
    print(f'latency of {shape_of(images)} {images.dtype}, {images.device}, '
          f'torch {torch.__version__}:\n'
          f'{timer.blocked_autorange(min_run_time=1)}')
    if images.is_cuda:
        print('peak memory of CUDA tensors: '
              f'{torch.cuda.max_memory_allocated(images.device):,} bytes on '
              f'{torch.cuda.get_device_name(images.device)}')


def print_counts(model, images):
    """Parameters and FLOPs of a model and of its steps."""
    flops = FlopAnalyzer(model, images)
    table = complexity_stats_table(flops, max_depth=2, show_param_shapes=False)
    steps = step_sizes_of(model)
    parameters = parameter_count(model)
    kinds = Counter(type(step).__name__ for step in steps.values())
    left_out = {name.rpartition('::')[2]: count
                for name, count in flops.unsupported_ops().most_common()}
    print(f'{type(model).__name__}, backbone '
          f'{type(getattr(model, "backbone", None)).__name__}, '
          f'{shape_of(images)}')
    print(table.strip())
    print(f'total: {parameters[""]:,} parameters, {flops.total():,} FLOPs')
    print(f'steps: {sum(parameters[name] for name in steps):,} parameters, '
          f'{sum(map(flops.total, steps)):,} FLOPs in {listed(kinds) or 0}')
    print(f'operators not counted: {listed(left_out)}')


def listed(counts):
    """Names with their counts, on a line."""
    return ', '.join(f'{count} {name}' for name, count in counts.items())


def shape_of(images):
    return ' x '.join(map(str, images.shape))


@torch.no_grad()
def main():
    args = parse_args()
    device = torch.device(args.device)
    cfg = config.read_config(args.config, options=args.cfg_options)
    size = args.image_size or image_size(cfg)
    # First, since the traces of the counts take memory too.
    print_latency(*prepare(cfg, size, args.batch_size, device))
    print_counts(*prepare(cfg, size, 1, device))


if __name__ == '__main__':
    main()
