#!/usr/bin/env python
"""What a step size costs: time and memory of networks side by side.

python tools/benchmarks/step_cost.py                     # 224 px, batch 8
python tools/benchmarks/step_cost.py --compiled plain stepnet
python tools/benchmarks/step_cost.py --device cuda --precision bf16 \
  --layout channels_last --batch-size 256
python tools/benchmarks/step_cost.py --host              # or --host ConvNeXt

Every round runs all variants in turn, and another one first; the warm-up is
not counted. Training is forward and backward, the loss a sum; inference runs
in eval mode. With --host the maps are so small that only the host's time is
left, as where a GPU waits for it: one thread, and each network runs twice in
a row, of which the second counts. The CSV has one row for each network, mode
and phase. Saved bytes are the storages that autograd keeps for the backward
pass, parameters and buffers left out. The peak, of a GPU alone, is above the
memory in use before.
"""
import stepnet_mm.utils.interrupts  # Ctrl-C from here on

import csv
import platform
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median, quantiles

import torch
from mmengine.registry import MODELS
from torch.utils.benchmark import timer

import stepnet_mm  # registers modules
from stepnet_mm.ops import residual_tail
from stepnet_mm.utils.command_line import aligned, command_parser

STEP = 'mmpretrain.StepResNet'
#: name -> config of a backbone, or a timm model's name without its depth
NETWORKS = {
    'plain': dict(type='mmpretrain.ResNet'),
    'se_mmpretrain': dict(type='mmpretrain.SEResNet'),
    'se_timm': 'seresnet',
    'se': dict(type=STEP, step='SEAttention'),
    'se_unfused': dict(type=STEP, step='SEAttention', fused=False),
    'se_identity': dict(type=STEP, step='SEAttention',
                        step_blocks='identity'),
    'constant': dict(type=STEP, step='ConstantStep'),
    'eca': dict(type=STEP, step='ECAAttention'),
    'cbam': dict(type=STEP, step='CBAMAttention'),
    'stepnet': dict(type=STEP),
    'stepnet_unfused': dict(type=STEP, fused=False),
}
#: Of few channels, for --host; StepResNet's mm class and arguments.
SMALL = {
    'ResNet': dict(depth=50, base_channels=4, stem_channels=4),
    'ConvNeXt': dict(arch=dict(
        depths=[3, 3, 9, 3], channels=[16, 16, 32, 32])),
    'SwinTransformer': dict(img_size=32, window_size=1, arch=dict(
        embed_dims=16, depths=[2, 2, 6, 2], num_heads=[1, 2, 4, 8])),
}
DTYPES = dict(fp32=None, bf16=torch.bfloat16, fp16=torch.float16)
LAYOUTS = dict(contiguous=torch.contiguous_format,
               channels_last=torch.channels_last)
FIELDS = ('network', 'mode', 'phase', 'median_s', 'q1_s', 'q3_s',
          'of_plain_eager', 'of_plain_same_mode', 'saved_mb', 'peak_mb',
          'rounds', 'depth', 'batch_size', 'edge', 'threads', 'least')


def parse_args():
    parser = command_parser(__doc__)
    parser.add_argument('--device', default='cpu', help='cpu or cuda')
    parser.add_argument('--precision', default='fp32', choices=list(DTYPES),
                        help='other than fp32: autocast')
    parser.add_argument('--layout', default='contiguous',
                        choices=list(LAYOUTS), help='of the maps')
    parser.add_argument('--rounds', type=int, default=9,
                        help='of all networks, in turn; at least 2')
    parser.add_argument('--warm-up', type=int, default=2, help='rounds')
    parser.add_argument('--out', type=Path, help='folder of the CSV',
                        default=Path('work_dirs/step_cost'))
    parser.add_argument('--networks', nargs='+', choices=list(NETWORKS),
                        default=list(NETWORKS), metavar='NAME',
                        help='to time beside plain (default: '
                        f'{" ".join(NETWORKS)})')
    parser.add_argument('--compiled', nargs='+', default=[],
                        choices=list(NETWORKS), metavar='NAME',
                        help='networks to run under torch.compile as well')
    parser.add_argument('--phases', nargs='+', default=['train', 'infer'],
                        choices=['train', 'infer'], help='what is timed')
    parser.add_argument('--depth', type=int, default=50, help='of the ResNet')
    parser.add_argument('--batch-size', type=int, default=8, help='images')
    parser.add_argument('--edge', type=int, default=224, help='px')
    parser.add_argument('--least', type=int, metavar='ELEMENTS',
                        help='of a map that is fused, eager; default: the '
                        'package\'s')
    parser.add_argument('--host', nargs='?', const='ResNet',
                        choices=list(SMALL), help='one of few channels, at '
                        '32 px and batch 2, 35 rounds (default: ResNet)')
    args = parser.parse_args()
    if args.host:
        parser.set_defaults(edge=32, batch_size=2, rounds=35, networks=[
            'plain', 'stepnet', 'constant', 'se_identity',
            *['se_mmpretrain'] * (args.host == 'ResNet')])
        torch.set_num_threads(1)
        args = parser.parse_args()
    args.networks = [*dict.fromkeys(['plain', *args.networks])]
    return args


def build(name, args):
    torch.manual_seed(0)
    network = NETWORKS[name]
    if isinstance(network, str):
        import timm
        model = timm.create_model(f'{network}{args.depth}',
                                  num_classes=0, global_pool='')
    elif args.host:
        kind = network['type'].replace('ResNet', args.host)
        model = MODELS.build(dict(network, **SMALL[args.host], type=kind))
    else:
        model = MODELS.build(dict(network, depth=args.depth))
    return model


class TimedNetwork:
    """A backbone in a mode, and random images for it."""

    def __init__(self, name, mode, args):
        layout = LAYOUTS[args.layout]
        self.model = build(name, args).to(args.device, memory_format=layout)
        self.call = (torch.compile(self.model) if mode == 'compiled'
                     else self.model)
        torch.manual_seed(0)
        self.images = torch.randn(
            args.batch_size, 3, args.edge, args.edge,
            device=args.device).to(memory_format=layout)
        self.dtype = DTYPES[args.precision]

    def run(self, phase):
        """A forward pass; to train, the backward pass of its sum as well."""
        train = phase == 'train'
        with torch.set_grad_enabled(train), torch.autocast(
                self.images.device.type, self.dtype,
                enabled=self.dtype is not None):
            out = self.call(self.images)
            total = (out[-1] if isinstance(out, tuple) else out).sum()
        if train:
            total.backward()

    def seconds(self, phase):
        """Of a run, without the gradients of before."""
        self.model.train(phase == 'train')
        self.model.zero_grad(set_to_none=True)
        with torch.cuda.device_of(self.images):
            start = timer()  # waits for the device
            self.run(phase)
            return timer() - start

    def saved_megabytes(self):
        """What autograd keeps for the backward pass."""
        self.model.train()
        with count_saved(self.model) as found:
            self.run('train')
        return sum(found.values()) / 1e6

    def peak_megabytes(self):
        """What a training step takes, of a GPU."""
        self.model.zero_grad(set_to_none=True)
        device = self.images.device
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        self.run('train')
        return (torch.cuda.max_memory_allocated(device) - before) / 1e6


@contextmanager
def count_saved(model):
    """The bytes of each storage that autograd saves inside, by its address."""
    own = {t.untyped_storage().data_ptr()
           for t in (*model.parameters(), *model.buffers())}
    saved = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        yield saved


def interleave(clocks, rounds, warm_up):
    """Seconds of each round after the warm-up, by name."""
    times = {name: [] for name in clocks}
    order = [*clocks]
    for i in range(warm_up + rounds):
        order.append(order.pop(0))
        for name in order:
            seconds = clocks[name]()
            if i >= warm_up:
                times[name].append(seconds)
    return times


def rows_of(phase, networks, args):
    """A row for each network and mode; ratios by round, then their median."""
    def seconds(network):
        if args.host:
            network.seconds(phase)
        return network.seconds(phase)

    times = interleave(
        {key: partial(seconds, network) for key, network in networks.items()},
        args.rounds, args.warm_up)
    for (name, mode), taken in times.items():
        q1, middle, q3 = quantiles(taken, n=4)
        row = dict(
            network=name, mode=mode, phase=phase, median_s=f'{middle:.5f}',
            q1_s=f'{q1:.5f}', q3_s=f'{q3:.5f}', rounds=args.rounds,
            depth=args.depth, batch_size=args.batch_size, edge=args.edge,
            threads=torch.get_num_threads(),
            least=residual_tail.MIN_NUMEL[torch.device(args.device).type])
        for field, plain in (('of_plain_eager', ('plain', 'eager')),
                             ('of_plain_same_mode', ('plain', mode))):
            if plain in times:
                ratio = median(a / b for a, b in zip(taken, times[plain]))
                row[field] = f'{ratio:.4f}'
        if phase == 'train' and mode == 'eager':
            network = networks[name, mode]
            row['saved_mb'] = f'{network.saved_megabytes():.1f}'
            if network.images.is_cuda:
                row['peak_mb'] = f'{network.peak_megabytes():.0f}'
        yield row


def stem_of(args):
    """Benchmark, device, torch, precision and layout, for file names."""
    if torch.device(args.device).type == 'cuda':
        device = torch.cuda.get_device_name(args.device)
    else:
        device = f'{platform.machine()}-{torch.get_num_threads()}threads'
    version = torch.__version__.partition('+')[0]
    return '-'.join([
        'step_cost' + (f'_host_{args.host}' if args.host else ''),
        device.replace(' ', '_'), f'torch{version}', args.precision,
        args.layout])


def main():
    args = parse_args()
    if args.least is not None:
        residual_tail.MIN_NUMEL[torch.device(args.device).type] = args.least
    networks = {
        (name, mode): TimedNetwork(name, mode, args) for mode, names in (
            ('eager', args.networks), ('compiled', args.compiled))
        for name in names}
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / f'{stem_of(args)}.csv'
    rows = [row for phase in args.phases
            for row in rows_of(phase, networks, args)]
    with path.open('w', newline='') as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(rows)
    with path.open() as file:
        print(aligned([row[:10] for row in csv.reader(file)]))
    print(path)


if __name__ == '__main__':
    main()
