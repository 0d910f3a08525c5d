#!/usr/bin/env python
"""What step sizes are worth to a network: its metrics with and without them.

python tools/analysis/ablate_steps.py CONFIG CHECKPOINT

Evaluates three times: the network as it is; with each step size fixed at its
mean over the images, by channel; and with one number for each block. Says how
much step sizes vary over images and over channels. Attention modules of this
package are step sizes too.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import json
from datetime import date
from numbers import Real

import stepnet_mm  # noqa: F401  registers modules and the safe loader
from stepnet_mm import config as C
from stepnet_mm.hooks.load_report_hook import WholeLoadHook
from stepnet_mm.launch.entry import (
    beside_checkpoint,
    build_runner,
    config_from,
    make_config_parser,
)
from stepnet_mm.recording import ablate_step_sizes
from stepnet_mm.utils.command_line import output_file
from stepnet_mm.utils.files import file_digest, written_whole

VARIANTS = dict(trained='as trained', per_channel='fixed, per channel',
                per_block='fixed, per block')


def parse_args():
    parser = make_config_parser(__doc__)
    parser.add_argument('checkpoint', help='weights')
    parser.add_argument(
        '--split', choices=['val', 'test'], default='val', help='of the data')
    parser.add_argument(
        '--out', type=output_file,
        help='a JSON file of all numbers (default: beside the checkpoint, '
        '<checkpoint>_steps.json)')
    return parser.parse_args()


class Evaluation:
    """The test of a config, as often as it is asked for.

    The Runner's own ``test`` would begin anew each time: EMAHook, for one,
    would lose the weights that it averaged.
    """

    def __init__(self, cfg, changes):
        self.runner = build_runner(cfg, changes)
        self.runner.register_hook(WholeLoadHook())
        self.begun = False

    def metrics(self):
        """Numbers by name."""
        run = self.runner.test_loop.run if self.begun else self.runner.test
        self.begun = True
        return {key: float(value) for key, value in run().items()
                if isinstance(value, Real)}


def test_on(cfg, split):
    """Have the test of a config be that of a split.

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


def ablate(args):
    changes = []
    cfg = C.harden(config_from(args), changes.append)
    cfg.load_from = args.checkpoint
    test_on(cfg, args.split)
    if not args.skip_data_check:
        C.check_data(cfg, ('test_dataloader', ))
    evaluation = Evaluation(cfg, changes)
    found = ablate_step_sizes(evaluation.runner.model, evaluation.metrics)
    return found, beside_checkpoint(cfg, args.checkpoint, '_steps.json')


def as_json(args, found):
    """All that is known, with where it comes from."""
    return dict(
        config=args.config,
        checkpoint=args.checkpoint,
        sha256=file_digest(args.checkpoint),
        date=date.today().isoformat(),
        metrics={key: getattr(found, key) for key in VARIANTS},
        steps={name: dict(mean=m.mean.mean().item(),
                          over_images=m.over_samples,
                          over_channels=m.over_channels)
               for name, m in found.moments.items()})


def columns(head, rows):
    """Lines of text; the first column to the left, numbers to the right."""
    width = max(len(str(row[0])) for row in [head, *rows])
    return '\n'.join(
        f'{row[0]:{width}}' + ''.join(f'  {cell:>18}' for cell in row[1:])
        for row in [head, *rows])


def main():
    args = parse_args()
    found, beside = ablate(args)
    content, path = as_json(args, found), args.out or beside
    with written_whole(path) as file:
        file.write(json.dumps(content, indent=2).encode() + b'\n')
    metrics, steps = content['metrics'], content['steps']
    print(columns(['', *VARIANTS.values()],
                  [[name, *(f'{metrics[key][name]:.6g}' for key in VARIANTS)]
                   for name in metrics['trained']]))
    print()
    print(columns(['step size', 'mean', 'SD over images', 'SD over channels'],
                  [[name, *(f'{value:.4f}' for value in numbers.values())]
                   for name, numbers in steps.items()]))
    print(f'all numbers: {path}')


if __name__ == '__main__':
    main()
