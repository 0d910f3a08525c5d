#!/usr/bin/env python
"""Train the methods of Table 1 in a small network on some of CIFAR-10.

python tools/benchmarks/methods_cifar10.py cifar10 work_dirs/methods

Every method gets the same seeds, images and order, through tools/train.py; a
finished run is not run again. Prints a table: loss of the first and the last
epoch, top-1 accuracy on all test images after the last and the best tested
epoch.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import argparse
import json
import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).resolve().parents[2]
METHODS = ('plain', 'se', 'cbam', 'eca', 'sem', 'srm', 'fca', 'iebn',
           'stepnet')


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('data_root', help='CIFAR-10, pickles or folders')
    parser.add_argument('work_dir', type=Path)
    parser.add_argument('--depth', type=int, default=20, help='6n+2')
    parser.add_argument('--epochs', type=int, default=4)
    parser.add_argument(
        '--every', type=int, default=5, help='train on one image in EVERY')
    parser.add_argument('--jobs', type=int, default=1, help='side by side')
    parser.add_argument(
        '--val-interval', type=int, default=2, help='epochs between tests')
    parser.add_argument('--seeds', type=int, nargs='+', default=[0])
    parser.add_argument(
        '--methods', nargs='+', choices=METHODS, default=METHODS)
    return parser.parse_args()


def train(seed: int, method: str, args) -> Path:
    """Run one method where it is not there yet; returns its folder."""
    folder = args.work_dir / f'{method}_seed{seed}'
    last = args.epochs
    if not (folder / f'epoch_{last}.pth').exists():
        command = [
            sys.executable, ROOT / 'tools/train.py',
            ROOT / f'configs/resnet164/resnet164_{method}_cifar10.py',
            '--data-root', args.data_root, '--work-dir', folder, '--resume',
            '--cfg-options', f'model.backbone.depth={args.depth}',
            'model.backbone.block=basic', 'model.head.in_channels=64',
            f'train_dataloader.dataset.indices={spread_indices(args.every)}',
            'train_dataloader.num_workers=1', 'val_dataloader.num_workers=1',
            f'train_cfg.max_epochs={last}',
            f'train_cfg.val_interval={args.val_interval}',
            f'param_scheduler.milestones=[{last - 2},{last - 1}]',
            'default_hooks.logger.interval=10',
            f'randomness.seed={seed}'
        ]
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / 'train.log', 'a') as log:
            subprocess.run(
                command,
                check=True,
                stdout=log,
                stderr=log,
                env=dict(os.environ, OMP_NUM_THREADS='1'))
    return folder


def spread_indices(every: int) -> str:
    """Indices of the subset, over all classes (folders come sorted)."""
    return f'[{",".join(map(str, range(0, 50000, every)))}]'


def summary(folder: Path) -> dict:
    """First and last epoch's loss, last and best accuracy in %."""
    records = [
        json.loads(line) for path in sorted(folder.rglob('scalars.json'))
        for line in path.read_text().splitlines()
    ]
    losses = [(r['epoch'], r['loss']) for r in records if 'loss' in r]
    accuracy = [r['accuracy/top1'] for r in records if 'accuracy/top1' in r]
    of_epoch = lambda n: mean(loss for e, loss in losses if e == n)  # noqa
    return dict(
        first=of_epoch(1),
        last=of_epoch(max(e for e, _ in losses)),
        top1=accuracy[-1],
        best=max(accuracy),
        finite=all(math.isfinite(loss) for _, loss in losses))


def main():
    args = parse_args()
    with ThreadPoolExecutor(args.jobs) as pool:
        folders = list(
            pool.map(lambda run: train(*run, args),
                     product(args.seeds, args.methods)))
    print('| run | loss, first epoch | loss, last epoch | top-1 last | '
          'top-1 best | finite |\n|---|---|---|---|---|---|')
    for folder in folders:
        s = summary(folder)
        print(f'| {folder.name} | {s["first"]:.3f} | {s["last"]:.3f} | '
              f'{s["top1"]:.2f} | {s["best"]:.2f} | '
              f'{"all" if s["finite"] else "NOT ALL"} |')


if __name__ == '__main__':
    main()
