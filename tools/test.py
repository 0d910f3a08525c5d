#!/usr/bin/env python
"""Evaluate a checkpoint with a config of mmdet or mmpretrain.

python tools/test.py CONFIG CHECKPOINT --show-dir drawn
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import os

import stepnet_mm  # noqa: F401  registers modules and the safe loader
from stepnet_mm import config as C
from stepnet_mm.launch.entry import build_runner, config_from, make_parser


def parse_args():
    parser = make_parser(__doc__)
    parser.add_argument('checkpoint', help='checkpoint file')
    parser.add_argument('--out', help='dump all predictions into a .pkl')
    parser.add_argument('--show', action='store_true', help='in windows')
    parser.add_argument('--show-dir', help='draw predictions into a folder')
    parser.add_argument('--wait-time', type=float, default=2, help='seconds')
    args = parser.parse_args()
    if args.out and not args.out.endswith(('.pkl', '.pickle')):
        parser.error(f'--out: expected a .pkl file, got {args.out}')
    return args


def draw(cfg, args):
    """Switch on the library's own visualization hook."""
    hook = cfg.get('default_hooks', {}).get('visualization')
    if hook is None:
        raise ValueError('--show, --show-dir: expected '
                         'default_hooks.visualization in the config, got '
                         'none; set it, or leave these out')
    detection = cfg.get('default_scope') == 'mmdet'
    folder = args.show_dir and os.path.abspath(args.show_dir)
    hook['draw' if detection else 'enable'] = True
    hook['test_out_dir' if detection else 'out_dir'] = folder
    hook.update(show=args.show, wait_time=args.wait_time)


def main():
    args = parse_args()
    changes = []
    cfg = C.harden(config_from(args), changes.append)
    cfg.load_from = args.checkpoint
    if args.show or args.show_dir:
        draw(cfg, args)
    if not args.skip_data_check:
        C.check_data(cfg, ('test_dataloader', ))
    runner = build_runner(cfg, changes)
    if args.out:
        from mmengine.evaluator import DumpResults
        runner.test_evaluator.metrics.append(
            DumpResults(out_file_path=args.out))
    runner.test()


if __name__ == '__main__':
    main()
