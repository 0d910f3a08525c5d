#!/usr/bin/env python
"""Evaluate a checkpoint with a config of mmdet or mmpretrain.

python tools/test.py CONFIG CHECKPOINT --show-dir drawn
"""
import argparse
import os

from mmengine.config import DictAction
from mmengine.evaluator import DumpResults
from mmengine.registry import RUNNERS
from mmengine.runner import Runner

import stepnet_mm  # noqa: F401  registers modules and the safe loader
from stepnet_mm.engine import config as C


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('config', help='config file')
    parser.add_argument('checkpoint', help='checkpoint file')
    parser.add_argument('--work-dir', help='where the log goes')
    parser.add_argument('--out', help='dump all predictions into a .pkl')
    parser.add_argument('--show', action='store_true', help='in windows')
    parser.add_argument('--show-dir', help='draw predictions into a folder')
    parser.add_argument('--wait-time', type=float, default=2, help='seconds')
    parser.add_argument(
        '--data-root', help='folder of all datasets, in place of data_root')
    parser.add_argument(
        '--image-scale',
        nargs=2,
        type=int,
        metavar=('LONG', 'SHORT'),
        help='scale of every Resize, px')
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=DictAction,
        help='changes to the config, key=value; lists as key="[a,b]"')
    parser.add_argument(
        '--launcher', choices=['none', 'pytorch', 'slurm'], default='none')
    parser.add_argument('--local_rank', '--local-rank', type=int, default=0)
    args = parser.parse_args()
    if args.out and not args.out.endswith(('.pkl', '.pickle')):
        parser.error(f'--out: expected a .pkl file, got {args.out}')
    os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    return args


def draw(cfg, args):
    """Switch on the library's own visualization hook."""
    hook = cfg.get('default_hooks', {}).get('visualization')
    if hook is None:
        raise ValueError('--show, --show-dir: the config has no '
                         'default_hooks.visualization')
    detection = cfg.get('default_scope') == 'mmdet'
    folder = args.show_dir and os.path.abspath(args.show_dir)
    hook['draw' if detection else 'enable'] = True
    hook['test_out_dir' if detection else 'out_dir'] = folder
    hook.update(show=args.show, wait_time=args.wait_time)


def main():
    args = parse_args()
    cfg = C.load_config(args.config, args.work_dir, args.cfg_options,
                        args.launcher)
    if args.data_root:
        C.set_data_root(cfg, args.data_root)
    if args.image_scale:
        C.set_image_scale(cfg, args.image_scale)
    cfg.load_from = args.checkpoint
    if args.show or args.show_dir:
        draw(cfg, args)
    C.check_data(cfg, ('test_dataloader', ))
    build = RUNNERS.build if 'runner_type' in cfg else Runner.from_cfg
    runner = build(cfg)
    if args.out:
        runner.test_evaluator.metrics.append(
            DumpResults(out_file_path=args.out))
    runner.test()


if __name__ == '__main__':
    main()
