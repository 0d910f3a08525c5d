#!/usr/bin/env python
"""What recording costs: time, memory, and a probe of 512 CIFAR images.

python tools/benchmarks/recording.py

Time: forward and backward of a ResNet-50 with and without a recorder, taken
in turns, as processor time of this process, or until a GPU has done. Memory:
peak resident set of fresh processes, or peak of a GPU's allocator. Probe: 512
random images of 32 px through ResNet-164. OMP_NUM_THREADS sets the threads.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import time
from contextlib import nullcontext
from functools import partial
from statistics import median

import torch
from mmengine.registry import MODELS
from step_cost import in_fresh_process
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
#: What is recorded: nothing, or states by one of the definitions.
VARIANTS = ('plain', 'residual', 'output')


def build(args):
    """The ResNet-50 and its images."""
    torch.manual_seed(0)
    return MODELS.build(dict(RESNET)).to(args.device), torch.randn(
        args.batch_size, 3, args.edge, args.edge, device=args.device)


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


def peak(args, variant):
    """Peak in bytes of two iterations, in a fresh process."""
    model, images = build(args)
    for _ in range(2):
        seconds(args, model, images, variant)
    return peak_bytes(images.device)


@torch.no_grad()
def time_probe(args):
    """Wall-clock seconds of a probe, and its table's shape."""
    torch.manual_seed(0)
    model = MODELS.build(dict(CIFAR)).to(args.device)
    model.eval()
    images = torch.randn(IMAGES, 3, 32, 32, device=args.device)
    start = timer()  # waits for a GPU
    with TrajectoryRecorder(model) as recorder:
        for batch in images.split(128):
            model(batch)
    summarize_stiffness(recorder.nsi, recorder.stage)
    return timer() - start, tuple(recorder.nsi.shape)


def main():
    parser = command_parser(__doc__)
    parser.add_argument('--device', default='cpu', help='cpu or cuda')
    parser.add_argument('--batch-size', type=int, default=8, help='images')
    parser.add_argument('--edge', type=int, default=224, help='px')
    parser.add_argument('--rounds', type=int, default=9,
                        help='of all, in turn')
    args = parser.parse_args()
    resnet = build(args)
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
    for name in VARIANTS:
        print(f'peak memory, {name}: '
              f'{in_fresh_process(peak, args, name) / 1e6:,.0f} MB')
    taken, shape = time_probe(args)
    print(f'probe: ResNet-164, {IMAGES} images of 32 px, table {shape}: '
          f'{taken:.1f} s')


if __name__ == '__main__':
    main()
