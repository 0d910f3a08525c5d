#!/usr/bin/env python
"""Train from a config of mmdet, mmpretrain or mmseg; log what comes next.

python tools/train.py configs/faster_rcnn_r50_stepnet.py
"""
import stepnet_mm.utils.interrupts  # Ctrl-C from here on

import shlex
import signal
from pathlib import Path

# What comes during the start waits until PreemptionHook listens.
HELD = [getattr(signal, name) for name in ('SIGUSR1', 'SIGUSR2')
        if hasattr(signal, name) and hasattr(signal, 'pthread_sigmask')]
if HELD:
    signal.pthread_sigmask(signal.SIG_BLOCK, HELD)

import stepnet_mm
from stepnet_mm import config
from stepnet_mm.launch import entry
from stepnet_mm.launch.distributed import init_distributed
from stepnet_mm.launch.work_dir_lock import work_dir_lock
from stepnet_mm.utils.files import read_last_checkpoint
from stepnet_mm.utils.provenance import machine, revision
from stepnet_mm.utils.slurm import is_first_rank
from stepnet_mm.version import __version__


def parse_args():
    parser = entry.make_parser(__doc__)
    parser.add_argument(
        '--resume', nargs='?', const='auto',
        help='go on from the last checkpoint of the work dir, or from PATH')
    parser.add_argument(
        '--amp', action='store_true', help='automatic mixed precision')
    parser.add_argument(
        '--auto-scale-lr', action='store_true',
        help='scale the learning rate with the batch size')
    parser.add_argument(
        '--no-validate', action='store_true', help='train without validation')
    parser.add_argument(
        '--no-persistent-workers', action='store_true',
        help='data loaders with persistent_workers=False')
    parser.add_argument(
        '--skip-data-check', action='store_true',
        help='no warnings about data, no validation of two batches beforehand')
    return parser.parse_args()


def build_config(args):
    """The config that runs, the user's, and what the log begins with."""
    commit = revision() if is_first_rank() else 'as on the first rank'
    changes = [f'stepnet_mm: {__version__}, {commit}',
               f'stepnet_mm: machine: {machine()}']
    cfg = entry.config_from(args)
    if args.no_validate:
        config.use_no_validation(cfg)
    if args.no_persistent_workers:
        config.set_in_loaders(cfg, persistent_workers=False)
    if args.amp:
        config.use_amp(cfg)
    if args.auto_scale_lr:
        config.use_auto_scale_lr(cfg)
    own = entry.prepare_config(cfg, changes)
    if args.resume:
        config.use_resume(cfg, args.resume)
    return cfg, own, changes


def say_where_all_is(runner):
    """What a training has left, and the commands that go on from it."""
    from stepnet_mm.steps.base import step_sizes_of
    folder, last = Path(runner.work_dir), read_last_checkpoint(runner.work_dir)
    if not last or not is_first_rank():
        return
    path = folder / Path(runner.cfg.filename).name
    both = shlex.join([str(path), last])
    steps = ' --steps' * bool(step_sizes_of(runner.model))
    runner.logger.info('\n'.join([
        f'checkpoint: {last}', f'config as it ran: {path}',
        f'log and curves: {runner.log_dir}', 'next:',
        f'  python tools/test.py {both}',
        f'  python tools/predict.py {both} IMAGE_OR_FOLDER{steps}',
        f'  python tools/analysis/plot.py training {shlex.quote(str(folder))}',
    ]))


def main():
    args = parse_args()
    cfg, own, changes = build_config(args)
    if HELD and not config.has_hook(cfg, 'PreemptionHook'):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD)
    init_distributed(cfg)
    with work_dir_lock(cfg.work_dir):
        runner = entry.build_runner(cfg, changes, own)
        if not args.skip_data_check:
            from stepnet_mm.hooks.sanity_run_hook import SanityRunHook
            runner.register_hook(SanityRunHook())
        runner.train()
    if hasattr(runner, 'log_dir'):
        say_where_all_is(runner)


if __name__ == '__main__':
    main()
