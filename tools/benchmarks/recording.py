#!/usr/bin/env python
"""What recording costs: time, memory, and a probe of 512 CIFAR images.

python tools/benchmarks/recording.py

Time: forward and backward of a ResNet-50 with and without a recorder, taken
in turns, as processor time of this process, or until a GPU has done. Memory:
peak resident set of fresh processes, or peak of a GPU's allocator. Probe: 512
random images of 32 px through ResNet-164. OMP_NUM_THREADS sets the threads.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import argparse
import time
from contextlib import nullcontext
from functools import partial
from statistics import median

import torch
from mmengine.registry import MODELS
from step_cost import peak_of_child
from torch.utils.benchmark import timer

import stepnet_mm  # noqa: F401  registers modules
from stepnet_mm.profiling import interleave, peak_bytes
from stepnet_mm.recording import TrajectoryRecorder
from stepnet_mm.stiffness import summarize_stiffness
from stepnet_mm.utils.command_line import command_parser

#: Of a TNSHook, in iterations; images of a probe.
INTERVAL, IMAGES = 50, 512
RESNET = dict(type='mmpretrain.ResNet', depth=50, out_indices=(3, ))
CIFAR = dict(type='mmpretrain.StepResNetCIFAR', depth=164)


def parse_args():
    parser = command_parser(__doc__)
    parser.add_argument('--device', default='cpu', help='cpu or cuda')
    parser.add_argument('--batch-size', type=int, default=8,
                        help='images')
    parser.add_argument('--edge', type=int, default=224, help='px')
    parser.add_argument('--rounds', type=int, default=9,
                        help='of all, in turn')
    parser.add_argument(
        '--child', choices=['plain', 'residual', 'output'],
        help=argparse.SUPPRESS)
    return parser.parse_args()


def build(cfg, device):
    torch.manual_seed(0)
    model = MODELS.build(dict(cfg)).to(device)
    model.train()
    return model


def train_once(model, images, definition=None):
    """Forward and backward; with a definition recorded and summed up."""
    recorder = definition and TrajectoryRecorder(
        model, definition=definition)
    model.zero_grad(set_to_none=True)
    with recorder or nullcontext():
        model(images)[-1].sum().backward()
    if recorder:
        summarize_stiffness(recorder.nsi, recorder.stage, recorder.blocks)


def build_and_draw(args):
    """The ResNet-50 and its images."""
    return build(RESNET, args.device), torch.randn(
        args.batch_size, 3, args.edge, args.edge, device=args.device)


def seconds(args, model, images, definition):
    clock = time.process_time if args.device == 'cpu' else timer
    start = clock()
    train_once(model, images, definition)
    return clock() - start


def time_overhead(args):
    """Median seconds of an iteration by what is recorded, taken in turn."""
    model, images = build_and_draw(args)
    times = interleave({
        definition: partial(seconds, args, model, images, definition)
        for definition in (None, 'residual', 'output')}, args.rounds, 1)
    return {key: median(taken) for key, taken in times.items()}


def train_twice(args, variant):
    """Returns the peak of it, in bytes."""
    model, images = build_and_draw(args)
    for _ in range(2):
        train_once(model, images, None if variant == 'plain' else variant)
    return peak_bytes(images.device)


def peak_memory(args, variant):
    """Peak in MB of a training of two iterations."""
    if args.device == 'cpu':
        return peak_of_child(variant)
    torch.cuda.reset_peak_memory_stats(args.device)
    return train_twice(args, variant) / 1e6


@torch.no_grad()
def time_probe(args):
    """Wall-clock seconds of a probe, and its table's shape."""
    model = build(CIFAR, args.device)
    model.eval()
    images = torch.randn(IMAGES, 3, 32, 32, device=args.device)
    start = timer()  # waits for a GPU
    with TrajectoryRecorder(model) as recorder:
        for batch in images.split(128):
            model(batch)
    summarize_stiffness(recorder.nsi, recorder.stage)
    return timer() - start, tuple(recorder.nsi.shape)


def main():
    args = parse_args()
    if args.child:
        return print(train_twice(args, args.child))
    times = time_overhead(args)
    plain = times.pop(None)
    print(f'ResNet-50, forward and backward, {args.batch_size} x 3 x '
          f'{args.edge} x {args.edge} px, {torch.get_num_threads()} threads, '
          f'median of {args.rounds}: {plain:.3f} s')
    for definition, taken in times.items():
        more = taken / plain - 1
        print(f'  recorded ({definition}): {taken:.3f} s, {more:+.1%}; '
              f'{more / INTERVAL:+.2%} at interval {INTERVAL}')
    for variant in ('plain', 'residual', 'output'):
        print(f'peak memory, {variant}: '
              f'{peak_memory(args, variant):,.0f} MB')
    taken, shape = time_probe(args)
    print(f'probe: ResNet-164, {IMAGES} images of 32 px, table {shape}: '
          f'{taken:.1f} s')


if __name__ == '__main__':
    main()
