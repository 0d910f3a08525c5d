#!/usr/bin/env python
"""What recording costs: time of a training iteration.

python tools/benchmarks/recording.py

Forward and backward of a ResNet-50 with and without a recorder, taken in
turns, as processor time of this process, or until a GPU has done.
OMP_NUM_THREADS sets the threads.
"""
import stepnet_mm.utils.interrupts  # Ctrl-C from here on

import time
from contextlib import nullcontext
from functools import partial
from statistics import median

import torch
from mmengine.registry import MODELS
from torch.utils.benchmark import timer

import stepnet_mm  # registers modules
from stepnet_mm.profiling import interleave
from stepnet_mm.recording import TrajectoryRecorder
from stepnet_mm.stiffness import summarize_stiffness
from stepnet_mm.utils.command_line import command_parser

#: Of a TNSHook, in iterations.
INTERVAL = 50
RESNET = dict(type='mmpretrain.ResNet', depth=50, out_indices=(3, ))
#: What is recorded: nothing, or states by one of the definitions.
VARIANTS = ('plain', 'residual', 'output')


def seconds(args, model, images, variant):
    """Of a forward and a backward pass, recorded and summed up."""
    clock = time.process_time if args.device == 'cpu' else timer
    start = clock()
    recorder = variant != 'plain' and TrajectoryRecorder(
        model, definition=variant)
    model.zero_grad(set_to_none=True)
    with recorder or nullcontext():
        model(images)[-1].sum().backward()
    if recorder:
        summarize_stiffness(recorder.nsi, recorder.stage, recorder.blocks)
    return clock() - start


def main():
    parser = command_parser(__doc__)
    parser.add_argument('--device', default='cpu', help='cpu or cuda')
    parser.add_argument('--batch-size', type=int, default=8, help='images')
    parser.add_argument('--edge', type=int, default=224, help='px')
    parser.add_argument('--rounds', type=int, default=9,
                        help='of all, in turn')
    args = parser.parse_args()
    torch.manual_seed(0)
    resnet = MODELS.build(dict(RESNET)).to(args.device), torch.randn(
        args.batch_size, 3, args.edge, args.edge, device=args.device)
    times = {name: median(taken) for name, taken in interleave(
        {name: partial(seconds, args, *resnet, name) for name in VARIANTS},
        args.rounds, 1).items()}
    plain = times.pop('plain')
    print(f'ResNet-50, forward and backward, {args.batch_size} x 3 x '
          f'{args.edge} x {args.edge} px, {torch.get_num_threads()} threads, '
          f'median of {args.rounds}: {plain:.3f} s')
    for name, taken in times.items():
        more = taken / plain - 1
        print(f'  recorded ({name}): {taken:.3f} s, {more:+.1%}; '
              f'{more / INTERVAL:+.2%} at interval {INTERVAL}')


if __name__ == '__main__':
    main()
