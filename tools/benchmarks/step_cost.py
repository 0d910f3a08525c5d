#!/usr/bin/env python
"""What a step size costs: time and memory of networks side by side.

python tools/benchmarks/step_cost.py                     # 224 px, batch 8
python tools/benchmarks/step_cost.py --compiled plain stepnet
python tools/benchmarks/step_cost.py --device cuda --precision bf16 \
  --layout channels_last --batch-size 256
python tools/benchmarks/step_cost.py --detector --networks plain stepnet \
  --edge 512 --batch-size 2

Every round runs all variants in turn, so that a drift of the machine hits all
alike; the first rounds are not counted. Training is forward and backward, the
loss a sum (with --detector, the detector's losses); inference runs in eval
mode. The last BatchNorms of the blocks have γ = 1, so residuals are not 0. The
CSV has one row for each network, mode and phase; its name carries
device, torch, precision and layout. Saved bytes are the storages that autograd
keeps for the backward pass, parameters and buffers left out.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import argparse
import csv
import platform
import subprocess
import sys
from functools import partial
from pathlib import Path
from statistics import median, quantiles

import torch
from mmengine.registry import MODELS

import stepnet_mm  # noqa: F401  registers modules
from stepnet_mm.config import read_config
from stepnet_mm.profiling import (
    Contestant,
    interleave,
    median_ratio,
    peak_bytes,
    prepare,
    summed,
)
from stepnet_mm.utils.command_line import aligned, command_parser
from stepnet_mm.visualization import save_figure, style
from stepnet_mm.visualization.style import panel_grid

DETECTOR = Path(__file__).parents[2] / 'configs/faster_rcnn_r50_stepnet.py'
STEP = 'mmpretrain.StepResNet'
#: name -> config of a backbone, or a timm model's name without its depth
NETWORKS = {
    'plain': dict(type='mmpretrain.ResNet'),
    'se_mmpretrain': dict(type='mmpretrain.SEResNet'),
    'se_timm': 'seresnet',
    'se': dict(type=STEP, step='SEAttention'),
    'se_unfused': dict(type=STEP, step='SEAttention', fused=False),
    'eca': dict(type=STEP, step='ECAAttention'),
    'cbam': dict(type=STEP, step='CBAMAttention'),
    'stepnet': dict(type=STEP),
    'stepnet_unfused': dict(type=STEP, fused=False),
}
DTYPES = dict(fp32=None, bf16=torch.bfloat16, fp16=torch.float16)
FIELDS = ('network', 'mode', 'phase', 'median_s', 'q1_s', 'q3_s',
          'of_plain_eager', 'of_plain_same_mode', 'saved_mb', 'peak_mb',
          'rounds', 'depth', 'batch_size', 'edge', 'threads')


def parse_args():
    parser = command_parser(__doc__)
    parser.add_argument('--device', default='cpu', help='cpu or cuda')
    parser.add_argument('--precision', default='fp32', choices=list(DTYPES),
                        help='other than fp32: autocast')
    parser.add_argument('--layout', default='contiguous',
                        choices=['contiguous', 'channels_last'],
                        help='of the maps')
    parser.add_argument('--rounds', type=int, default=9,
                        help='of all networks, in turn')
    parser.add_argument('--warm-up', type=int, default=2, help='rounds')
    parser.add_argument(
        '--out', type=Path, default=Path('work_dirs/step_cost'),
        help='folder of the CSV and the figure')
    style.add_options(parser)
    parser.add_argument('--networks', nargs='+', default=list(NETWORKS),
                        choices=list(NETWORKS), metavar='NAME',
                        help='to time, plain among them')
    parser.add_argument('--compiled', nargs='+', default=[],
                        choices=list(NETWORKS), metavar='NAME',
                        help='networks to run under torch.compile as well')
    parser.add_argument('--phases', nargs='+', default=['train', 'infer'],
                        choices=['train', 'infer'], help='what is timed')
    parser.add_argument('--depth', type=int, default=50,
                        help='of the ResNet')
    parser.add_argument('--batch-size', type=int, default=8,
                        help='images')
    parser.add_argument('--edge', type=int, default=224, help='px')
    parser.add_argument('--detector', action='store_true',
                        help='Faster R-CNN around each network (mmdet)')
    parser.add_argument('--child', help=argparse.SUPPRESS)
    args = parser.parse_args()
    check_arguments(parser, args)
    return args


def check_arguments(parser, args):
    if args.rounds < 2:
        parser.error(f'--rounds: expected at least 2, got {args.rounds}')
    try:
        torch.zeros(1, device=args.device)
    except (RuntimeError, AssertionError) as error:
        parser.error(f'--device {args.device}: {str(error).splitlines()[0]}')
    if 'plain' not in args.networks:
        parser.error('--networks: expected plain among them, which the '
                     'others are compared with')
    if not args.detector:
        return
    args.phases = ['train']
    strange = {'se_timm', 'se_mmpretrain'} & set(args.networks)
    if strange:
        parser.error(f'--detector: mmdet has no {", ".join(sorted(strange))}; '
                     'name other --networks')
    if args.compiled:
        parser.error('--detector: the loss of a detector is not compiled '
                     'here; leave --compiled out')


class Variant(Contestant):
    """A network in one mode, with the input that it is run on."""

    def __init__(self, name, mode, args):
        self.name, self.mode = name, mode
        layout = getattr(torch, 'contiguous_format' if args.layout ==
                         'contiguous' else 'channels_last')
        if args.detector:
            forward, images = build_detector(name, args)
            model, call = forward.model, forward.loss
        else:
            model, images = build(name, args)
            call = summed(torch.compile(model) if mode == 'compiled'
                          else model)
        super().__init__(model.to(memory_format=layout),
                         images.to(memory_format=layout), call,
                         DTYPES[args.precision])


def build(name, args):
    """A backbone, and images for it."""
    torch.manual_seed(0)
    if isinstance(NETWORKS[name], str):
        import timm
        model = timm.create_model(f'{NETWORKS[name]}{args.depth}',
                                  num_classes=0, global_pool='')
    else:
        model = MODELS.build(dict(NETWORKS[name], depth=args.depth))
    torch.manual_seed(0)
    return model.to(args.device), torch.randn(
        args.batch_size, 3, args.edge, args.edge, device=args.device)


def build_detector(name, args):
    """Faster R-CNN with FPN as in its config, nothing frozen, and images.

    All start with the plain detector's weights, and StepAdaptor at 1, so that
    they have the same proposals: their number is a good part of the time.
    """
    cfg = read_config(DETECTOR)
    own = {key: cfg.model.backbone[key] for key in (
        'num_stages', 'out_indices', 'norm_cfg', 'norm_eval', 'style')}
    network = dict(NETWORKS[name], depth=args.depth)
    if network['type'] == STEP:
        network.setdefault('step', dict(type='StepAdaptor', init_step=1))
    kind = network.pop('type').replace('mmpretrain', 'mmdet')
    cfg.model.backbone = dict(own, **network, type=kind)
    torch.manual_seed(0)
    forward, images = prepare(cfg, (args.edge, args.edge), args.batch_size,
                              torch.device(args.device))
    if name != 'plain':
        plain, _ = build_detector('plain', args)
        forward.model.load_state_dict(plain.model.state_dict(), strict=False)
    return forward, images


def peak_of(variant) -> float:
    """Peak of an eager training in MB, on a GPU above the memory before it."""
    if variant.images.is_cuda:
        return variant.peak_megabytes()
    return peak_of_child(variant.name)


def peak_of_child(name: str) -> float:
    """Peak resident set in MB of this command with --child NAME.

    It is a fresh process, in which torch and the libraries count too.
    """
    command = [sys.executable, *sys.argv, '--child', name]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(result.stderr)
    return int(result.stdout.splitlines()[-1]) / 1e6


def run_child(args):
    variant = Variant(args.child, 'eager', args)
    for _ in range(2):
        variant.seconds()
    print(peak_bytes(torch.device('cpu')))


def rows_of(phase, times, args) -> list:
    """A row for each variant, ratios by round and then their median."""
    plain = {v.mode: taken for v, taken in times.items() if v.name == 'plain'}
    rows = []
    for variant, taken in times.items():
        q1, _, q3 = quantiles(taken, n=4)
        row = dict(
            network=variant.name, mode=variant.mode, phase=phase,
            median_s=f'{median(taken):.5f}', q1_s=f'{q1:.5f}',
            q3_s=f'{q3:.5f}', rounds=args.rounds, depth=args.depth,
            batch_size=args.batch_size, edge=args.edge,
            threads=torch.get_num_threads(),
            of_plain_eager=f'{median_ratio(taken, plain["eager"]):.4f}')
        if variant.mode in plain:
            same = median_ratio(taken, plain[variant.mode])
            row['of_plain_same_mode'] = f'{same:.4f}'
        if phase == 'train' and variant.mode == 'eager':
            row['saved_mb'] = f'{variant.saved_megabytes():.1f}'
            row['peak_mb'] = f'{peak_of(variant):.0f}'
        rows.append(row)
    return rows


def stem_of(args) -> str:
    """Benchmark, device, torch, precision and layout, for file names."""
    if torch.device(args.device).type == 'cuda':
        device = torch.cuda.get_device_name(args.device)
    else:
        device = f'{platform.machine()}-{torch.get_num_threads()}threads'
    version = torch.__version__.partition('+')[0]
    return '-'.join([
        'step_cost_detector' if args.detector else 'step_cost',
        device.replace(' ', '_'), f'torch{version}', args.precision,
        args.layout])


def write_csv(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open('w', newline='') as file:
        writer = csv.DictWriter(file, FIELDS, restval='')
        writer.writeheader()
        writer.writerows(rows)


@style.styled
def plot(rows):
    """Bars of time over eager plain, with the quartiles."""
    phases = list(dict.fromkeys(row['phase'] for row in rows))
    figure, axes = panel_grid(
        len(phases), 4.3, 1. + .3 * len(rows) / len(phases))
    for axis, phase in zip(axes, phases):
        own = [row for row in rows if row['phase'] == phase]
        ratios = [float(row['of_plain_eager']) for row in own]
        spread = [[abs(float(row[q]) / float(row['median_s']) - 1) * ratio
                   for row, ratio in zip(own, ratios)]
                  for q in ('q1_s', 'q3_s')]
        names = [f'{row["network"]}, {row["mode"]}'.removesuffix(', eager')
                 for row in own]
        axis.bar_label(axis.barh(
            names, ratios, xerr=spread, ecolor=style.theme().ink),
                       [f'{ratio:.3f}' for ratio in ratios], padding=4)
        axis.margins(x=.2)
        axis.invert_yaxis()
        axis.set(xlabel=f'time to {phase} / plain, eager')
    return figure


def main():
    args = parse_args()
    if args.child:
        return run_child(args)
    variants = [Variant(name, mode, args) for mode, names in (
        ('eager', args.networks), ('compiled', args.compiled))
        for name in names]
    rows, path = [], args.out / f'{stem_of(args)}.csv'
    for phase in args.phases:
        times = interleave({v: partial(v.seconds, phase) for v in variants},
                           args.rounds, args.warm_up)
        rows += rows_of(phase, times, args)
        write_csv(path, rows)
    with style.use(args.size, args.theme):
        save_figure(plot(rows), path.with_suffix('.png'))
    shown = FIELDS[:10]
    print(aligned([shown, *([str(row.get(f, '')) for f in shown]
                            for row in rows)]))
    print(path)


if __name__ == '__main__':
    main()
