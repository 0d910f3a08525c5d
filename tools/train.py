#!/usr/bin/env python
"""Train a detector or a classifier from a config of mmdet or mmpretrain.

python tools/train.py configs/faster_rcnn_r50_stepnet.py
"""
import argparse
import os

from mmengine.config import DictAction
from mmengine.registry import RUNNERS
from mmengine.runner import Runner

import stepnet_mm  # noqa: F401  registers modules and the safe loader
from stepnet_mm.engine import config as C


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('config', help='config file')
    parser.add_argument('--work-dir', help='where logs and checkpoints go')
    parser.add_argument(
        '--resume',
        nargs='?',
        const='auto',
        help='go on from the last checkpoint of the work dir, or from PATH')
    parser.add_argument(
        '--amp', action='store_true', help='automatic mixed precision')
    parser.add_argument(
        '--auto-scale-lr',
        action='store_true',
        help='scale the learning rate with the batch size')
    parser.add_argument(
        '--data-root', help='folder of all datasets, in place of data_root')
    parser.add_argument(
        '--image-scale',
        nargs=2,
        type=int,
        metavar=('LONG', 'SHORT'),
        help='scale of every Resize, px')
    parser.add_argument(
        '--skip-data-check',
        action='store_true',
        help='do not look at annotation files and images beforehand')
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=DictAction,
        help='changes to the config, key=value; lists as key="[a,b]"')
    parser.add_argument(
        '--launcher', choices=['none', 'pytorch', 'slurm'], default='none')
    parser.add_argument('--local_rank', '--local-rank', type=int, default=0)
    args = parser.parse_args()
    os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    return args


def build_config(args):
    cfg = C.load_config(args.config, args.work_dir, args.cfg_options,
                        args.launcher)
    if args.data_root:
        C.set_data_root(cfg, args.data_root)
    if args.image_scale:
        C.set_image_scale(cfg, args.image_scale)
    if args.amp:
        C.use_amp(cfg)
    if args.auto_scale_lr:
        if 'base_batch_size' not in cfg.get('auto_scale_lr', {}):
            raise ValueError('--auto-scale-lr: the config has no '
                             'auto_scale_lr.base_batch_size')
        cfg.auto_scale_lr.enable = True
    if args.resume:
        cfg.resume = True
        cfg.load_from = None if args.resume == 'auto' else args.resume
    return cfg


def main():
    args = parse_args()
    cfg = build_config(args)
    if not args.skip_data_check:
        C.check_data(cfg, C.TRAIN + ('val_dataloader', ))
    build = RUNNERS.build if 'runner_type' in cfg else Runner.from_cfg
    build(cfg).train()


if __name__ == '__main__':
    main()
