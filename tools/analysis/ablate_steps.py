#!/usr/bin/env python
"""What step sizes are worth to a network: its metrics with and without them.

python tools/analysis/ablate_steps.py CONFIG CHECKPOINT

Evaluates three times: the network as it is; with each channel's step size
fixed at its mean over images and positions; and with one number for each
block. Says how much step sizes vary over images, positions and channels.
Attention modules of this package are step sizes too.
"""
import stepnet_mm.utils.interrupts  # Ctrl-C from here on

import json
from numbers import Real

from fixed_steps import ablate_step_sizes
from mmengine.hooks import LoggerHook

import stepnet_mm  # registers modules and the safe loader
from stepnet_mm.hooks.load_report_hook import WholeLoadHook
from stepnet_mm.launch import entry
from stepnet_mm.utils.command_line import aligned, output_file
from stepnet_mm.utils.provenance import measure_into

#: Beside ``mean``, how a file describes Δt.
SPREADS = ('over_samples', 'over_positions', 'over_channels')


def parse_args():
    parser = entry.make_config_parser(__doc__)
    parser.add_argument('checkpoint', help='weights')
    parser.add_argument(
        '--split', choices=['val', 'test'], default='val',
        help='of data and evaluator; the loop is that of test_cfg')
    parser.add_argument(
        '--out', type=output_file,
        help='a JSON file of all numbers, the fixed step sizes among them '
        '(default: beside the checkpoint, <checkpoint>_steps_<split>.json)')
    return parser.parse_args()


def start_runner(cfg, args):
    """A Runner with the weights, whose test is that of the split.

    Its test loop is run as often as wanted: ``Runner.test`` would begin anew
    each time, and EMAHook lose the weights that it averaged.
    """
    changes = []
    own = entry.prepare_config(cfg, changes)
    cfg.load_from = args.checkpoint
    for key in ('dataloader', 'evaluator'):
        cfg[f'test_{key}'] = cfg.get(f'{args.split}_{key}')
    cfg.test_cfg = cfg.get('test_cfg') or {}
    cfg.get('default_hooks', {}).pop('visualization', None)
    runner = entry.build_runner(cfg, changes, own)
    runner.register_hook(WholeLoadHook())
    runner.call_hook('before_run')
    runner.load_or_resume()
    return runner


def metrics_of(runner):
    """The metrics of a test that are numbers, by name."""
    found = runner.test_loop.run()
    # A work dir's log is of the network as it is.
    runner.hooks[:] = [hook for hook in runner.hooks
                       if not isinstance(hook, LoggerHook)]
    return {key: float(value) for key, value in found.items()
            if isinstance(value, Real) or getattr(value, 'ndim', None) == 0}


def ablate(cfg, args):
    """The numbers of the ablation, as JSON has them.

    Raises:
        ValueError: if the network as it is has no metric.
    """
    runner = start_runner(cfg, args)
    metrics, found = ablate_step_sizes(
        runner.model, lambda: metrics_of(runner))
    if not metrics['trained']:
        raise ValueError(
            f'{args.split}_evaluator: expected metrics that are numbers, got '
            'none (a detector that finds no box has none); set another one, '
            'or train for longer')
    content = dict(
        split=args.split,
        images=len(runner.test_dataloader.dataset),
        metrics=metrics,
        steps={name: dict(
            mean=moments.mean.mean().item(),
            **{key: getattr(moments, key) for key in SPREADS},
            by_channel=moments.mean.tolist())
            for name, moments in found.items()})
    # None for NaN and infinities, which JSON lacks.
    return json.loads(json.dumps(content), parse_constant=lambda _: None)


def print_table(head, rows):
    """Print names, each with its numbers."""
    print(aligned([head, *(
        (name, *('-' if value is None else f'{value:.5g}' for value in row))
        for name, row in rows)]), end='\n\n')


def main():
    args = parse_args()
    cfg = entry.config_from(args)
    path = entry.output_of(cfg, args, f'_steps_{args.split}.json')
    content = measure_into(path, args, lambda: ablate(cfg, args))
    metrics = content['metrics']
    print_table(('', 'as trained', 'fixed, per channel', 'fixed, per block'), [
        (name, [found.get(name) for found in metrics.values()])
        for name in metrics['trained']])
    print_table(('step size', 'mean', 'SD over images', 'SD over positions',
                 'SD over channels'),
                [(name, [step[key] for key in ('mean', *SPREADS)])
                 for name, step in content['steps'].items()])
    print(f'all numbers: {path}')


if __name__ == '__main__':
    main()
