#!/usr/bin/env python
"""What step sizes are worth to a network: its metrics with and without them.

python tools/analysis/ablate_steps.py CONFIG CHECKPOINT

Evaluates three times: the network as it is; with each channel's step size
fixed at its mean over images and positions; and with one number for each
block. Says how much step sizes vary over images, positions and channels.
Attention modules of this package are step sizes too.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import math
from numbers import Real

from mmengine.hooks import LoggerHook

import stepnet_mm  # noqa: F401  registers modules and the safe loader
from stepnet_mm import config as C
from stepnet_mm.hooks.load_report_hook import WholeLoadHook
from stepnet_mm.launch.entry import (
    build_runner,
    config_from,
    make_config_parser,
    output_of,
)
from stepnet_mm.launch.work_dir import measure_into
from stepnet_mm.recording import ablate_step_sizes
from stepnet_mm.recording.step_size_ablation import ABLATIONS, STEP_MOMENTS
from stepnet_mm.utils.command_line import aligned, output_file

TITLES = ('as trained', 'fixed, per channel', 'fixed, per block')


def parse_args():
    parser = make_config_parser(__doc__)
    parser.add_argument('checkpoint', help='weights')
    parser.add_argument(
        '--split', choices=['val', 'test'], default='val',
        help="whose data and evaluator are taken; the loop is the config's "
        'test_cfg')
    parser.add_argument(
        '--out', type=output_file,
        help='a JSON file of all numbers, the fixed step sizes among them '
        '(default: beside the checkpoint, <checkpoint>_steps_<split>.json)')
    return parser.parse_args()


def test_on(cfg, split):
    """Have the test of a config be that of a split, and draw nothing.

    Raises:
        ValueError: if the config does not evaluate on it.
    """
    for key in ('dataloader', 'evaluator'):
        if not cfg.get(f'{split}_{key}'):
            raise ValueError(
                f'{cfg.filename}: expected a {split}_{key}, got none; set '
                'one, or choose another --split')
        cfg[f'test_{key}'] = cfg[f'{split}_{key}']
    cfg.test_cfg = cfg.get('test_cfg') or {}
    cfg.get('default_hooks', {}).pop('visualization', None)


class Evaluation:
    """The test of a config, as often as it is asked for.

    ``Runner.test`` would begin anew each time: EMAHook, for one, would lose
    the weights that it averaged.
    """

    def __init__(self, cfg, changes):
        self.runner = build_runner(cfg, changes)
        self.runner.register_hook(WholeLoadHook())
        self.runner.call_hook('before_run')
        self.runner.load_or_resume()
        self.titles = iter(TITLES)

    def metrics(self):
        """Those that are numbers, by name.

        Raises:
            ValueError: if the network as it is has none.
        """
        title = next(self.titles)
        self.runner.logger.info(f'step sizes {title}:')
        found = self.runner.test_loop.run()
        # A work dir's log is of the network as it is.
        self.runner.hooks[:] = [hook for hook in self.runner.hooks
                                if not isinstance(hook, LoggerHook)]
        numbers = {key: float(value) for key, value in found.items()
                   if isinstance(value, Real)
                   or getattr(value, 'ndim', None) == 0}
        if not numbers and title == TITLES[0]:
            raise ValueError(
                'val_evaluator, test_evaluator: expected metrics that are '
                f'numbers, got {sorted(found) or "none"} (a detector that '
                'finds no box has none); set another one, or train for longer')
        return numbers


def ablate(cfg, args):
    """What the ablation of the network finds, as JSON has it."""
    changes = []
    cfg = C.harden(cfg, changes.append)
    cfg.load_from = args.checkpoint
    test_on(cfg, args.split)
    evaluation = Evaluation(cfg, changes)
    found = ablate_step_sizes(evaluation.runner.model, evaluation.metrics)
    return dict(
        split=args.split,
        images=len(evaluation.runner.test_dataloader.dataset),
        metrics={variant: {
            name: finite(value)
            for name, value in getattr(found, variant).items()}
            for variant in ABLATIONS},
        steps={name: dict(mean=finite(m.mean.mean().item()),
                          **{key: finite(getattr(m, key))
                             for key in STEP_MOMENTS[1:]},
                          by_channel=[*map(finite, m.mean.tolist())])
               for name, m in found.moments.items()})


def finite(value):
    """The number, or what JSON has for one that is none."""
    return value if math.isfinite(value) else None


def print_table(head, rows):
    """Names, each with its numbers."""
    print(aligned([head, *(
        (name, *('-' if value is None else f'{value:.5g}' for value in row))
        for name, row in rows)]), end='\n\n')


def main():
    args = parse_args()
    cfg = config_from(args)
    path = output_of(cfg, args, f'_steps_{args.split}.json')
    content = measure_into(path, args, lambda: ablate(cfg, args))
    variants = [content['metrics'][key] for key in ABLATIONS]
    print_table(('', *TITLES), [
        (name, [metrics.get(name) for metrics in variants])
        for name in dict.fromkeys(name for own in variants for name in own)])
    print_table(('step size', 'mean', 'SD over images', 'SD over positions',
                 'SD over channels'),
                [(name, [step[key] for key in STEP_MOMENTS])
                 for name, step in content['steps'].items()])
    print(f'all numbers: {path}')


if __name__ == '__main__':
    main()
