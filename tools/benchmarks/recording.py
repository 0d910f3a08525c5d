#!/usr/bin/env python
"""What recording costs: time, memory, and a probe of 512 CIFAR images.

python tools/benchmarks/recording.py

Time: forward and backward of a ResNet-50 with and without a recorder, taken
in turns, as processor time of this process. Memory: peak resident set of
fresh processes. Probe: 512 random images of 32 px through ResNet-164.
OMP_NUM_THREADS sets the threads.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import argparse
import json
import subprocess
import sys
import time
from contextlib import nullcontext
from statistics import median

import torch
from mmengine.registry import MODELS
from step_cost import peak_resident

import stepnet_mm  # noqa: F401  registers modules
from stepnet_mm.recording import TrajectoryRecorder
from stepnet_mm.stiffness import summarize_stiffness
from stepnet_mm.utils.command_line import command_parser

RESNET = dict(type='mmpretrain.ResNet', depth=50, out_indices=(3, ))
CIFAR = dict(type='mmpretrain.StepResNetCIFAR', depth=164)


def parse_args():
    parser = command_parser(__doc__)
    parser.add_argument('--batch-size', type=int, default=8,
                        help='images')
    parser.add_argument('--edge', type=int, default=224, help='px')
    parser.add_argument('--rounds', type=int, default=9,
                        help='of all, in turn')
    parser.add_argument('--interval', type=int, default=50,
                        help="TNSHook's, for the cost of an iteration")
    parser.add_argument('--images', type=int, default=512, help='of the probe')
    parser.add_argument(
        '--child', choices=['plain', 'residual', 'output'],
        help=argparse.SUPPRESS)
    return parser.parse_args()


def build(cfg):
    torch.manual_seed(0)
    model = MODELS.build(dict(cfg))
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


def seconds(function, *args):
    start = time.process_time()
    function(*args)
    return time.process_time() - start


def time_overhead(args):
    """Median seconds of an iteration by what is recorded.

    Rounds take all variants in turn, so drift of the machine hits all alike.
    """
    model = build(RESNET)
    images = torch.randn(args.batch_size, 3, args.edge, args.edge)
    train_once(model, images, 'residual')
    times = {None: [], 'residual': [], 'output': []}
    for _ in range(args.rounds):
        for definition, taken in times.items():
            taken.append(seconds(train_once, model, images, definition))
    return {key: median(taken) for key, taken in times.items()}


def run_child(args):
    """Print this process's peak resident set in MB."""
    model = build(RESNET)
    images = torch.randn(args.batch_size, 3, args.edge, args.edge)
    for _ in range(2):
        train_once(model, images,
                   None if args.child == 'plain' else args.child)
    print(json.dumps(peak_resident()))


def peak_memory(args, variant):
    """Peak resident set in MB of a process that trains two iterations."""
    command = [
        sys.executable, __file__, '--child', variant, '--batch-size',
        str(args.batch_size), '--edge', str(args.edge)
    ]
    result = subprocess.run(command, check=True, capture_output=True,
                            text=True)
    return json.loads(result.stdout.splitlines()[-1])


@torch.no_grad()
def time_probe(args):
    """Wall-clock seconds of a probe, and its table's shape."""
    model = build(CIFAR)
    model.eval()
    images = torch.randn(args.images, 3, 32, 32)
    start = time.perf_counter()
    with TrajectoryRecorder(model) as recorder:
        for batch in images.split(128):
            model(batch)
    summarize_stiffness(recorder.nsi, recorder.stage)
    return time.perf_counter() - start, tuple(recorder.nsi.shape)


def main():
    args = parse_args()
    if args.child:
        return run_child(args)
    times = time_overhead(args)
    plain = times.pop(None)
    print(f'ResNet-50, forward and backward, {args.batch_size} x 3 x '
          f'{args.edge} x {args.edge} px, {torch.get_num_threads()} threads, '
          f'median of {args.rounds}: {plain:.3f} s')
    for definition, taken in times.items():
        more = taken / plain - 1
        print(f'  recorded ({definition}): {taken:.3f} s, {more:+.1%}; '
              f'{more / args.interval:+.2%} at interval {args.interval}')
    for variant in ('plain', 'residual', 'output'):
        print(f'peak resident set, {variant}: '
              f'{peak_memory(args, variant):,.0f} MB')
    taken, shape = time_probe(args)
    print(f'probe: ResNet-164, {args.images} images of 32 px, table {shape}: '
          f'{taken:.1f} s')


if __name__ == '__main__':
    main()
