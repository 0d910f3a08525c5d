#!/usr/bin/env python
"""Evaluate a checkpoint with a config of mmdet or mmpretrain.

python tools/test.py CONFIG CHECKPOINT --show-dir drawn
"""
import stepnet_mm.utils.interrupts  # Ctrl-C from here on

import os

import mmengine
from mmengine.dist import is_main_process
from mmengine.registry import HOOKS

import stepnet_mm  # registers modules and the safe loader
from stepnet_mm import config
from stepnet_mm.config.lookup import accepted_arguments, class_of
from stepnet_mm.hooks.load_report_hook import WholeLoadHook
from stepnet_mm.launch import entry
from stepnet_mm.launch.distributed import init_distributed
from stepnet_mm.utils.command_line import output_file, positive


def parse_args():
    parser = entry.make_parser(__doc__)
    parser.add_argument('checkpoint', help='checkpoint file')
    parser.add_argument(
        '--allow-missing', nargs='?', const='', metavar='PATTERN',
        help='test a network with weights that the checkpoint does not set, '
        'or only where PATTERN, a regular expression, is found in their names')
    parser.add_argument(
        '--tta', action='store_true',
        help="test-time augmentation: the config's tta_model and "
        'tta_pipeline, or the mean over an image and its mirror image')
    parser.add_argument(
        '--amp', action='store_true', help='automatic mixed precision')
    parser.add_argument(
        '--out', type=output_file,
        help='dump all predictions into a .pkl, or the metrics')
    parser.add_argument(
        '--out-item', choices=('pred', 'metrics'),
        help='the content of --out (default: pred)')
    parser.add_argument(
        '--show', action='store_true', help='show predictions in windows')
    parser.add_argument('--show-dir', help='draw predictions into a folder')
    parser.add_argument(
        '--interval', type=positive, default=1,
        help='show or draw every N-th image of a classifier')
    parser.add_argument('--wait-time', type=float, default=2, help='seconds')
    args = parser.parse_args()
    if args.out_item and not args.out:
        parser.error('--out-item: expected --out beside it; add --out FILE')
    return args


def draw(cfg, args):
    """Switch on the library's own visualization hook, as its tool does."""
    hook = (cfg.get('default_hooks') or {}).get('visualization')
    if hook is None:
        raise ValueError('--show, --show-dir: expected a '
                         'default_hooks.visualization, got none; set it')
    kind = class_of(hook.get('type'), HOOKS, cfg.get('default_scope'))
    takes = accepted_arguments(kind) if kind else ()
    folder = args.show_dir and os.path.abspath(args.show_dir)
    hook.update(show=args.show, wait_time=args.wait_time)
    if 'draw' in takes:
        hook['draw'] = True
    else:
        hook.update(enable=True, interval=args.interval)
    for key in 'test_out_dir', 'out_dir':
        if key in takes:
            hook[key] = folder
            return
    if folder:  # mmseg's draws where its visualizer saves
        cfg.visualizer['save_dir'] = folder


def dump(cfg, path):
    """The metric by which the library's own tools/test.py writes --out."""
    if config.library_of(cfg) == 'mmdet':
        from mmdet.evaluation import DumpDetResults as Dump
    else:
        from mmengine.evaluator import DumpResults as Dump
    return Dump(out_file_path=str(path))


def main():
    args = parse_args()
    changes = []
    cfg = entry.config_from(args)
    own = entry.prepare_config(cfg, changes)
    cfg.update(load_from=args.checkpoint, resume=False)
    if args.tta:
        config.use_tta(cfg)
    if args.amp:
        cfg.test_cfg.fp16 = True
    if args.show or args.show_dir:
        draw(cfg, args)
    init_distributed(cfg)
    runner = entry.build_runner(cfg, changes, own)
    runner.register_hook(WholeLoadHook(args.allow_missing))
    if args.out and args.out_item != 'metrics':
        runner.test_evaluator.metrics.append(dump(cfg, args.out))
    metrics = runner.test()
    if args.out_item == 'metrics' and is_main_process():
        mmengine.dump(metrics, args.out)


if __name__ == '__main__':
    main()
