#!/usr/bin/env python
"""What step sizes are worth: metrics as trained, and with Δt held fixed.

python tools/analysis/ablate_steps.py CONFIG CHECKPOINT

Evaluates three times: the network as it is; with each channel's step size
fixed at its mean over images and positions; and with one number for each
block. Says how much step sizes vary over images, positions and channels.
Attention modules of this package are step sizes too.
"""
import stepnet_mm.utils.interrupts  # Ctrl-C from here on

import json
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from numbers import Real

import torch
from mmengine.hooks import LoggerHook

import stepnet_mm  # registers modules and the safe loader
from stepnet_mm.hooks.load_report_hook import WholeLoadHook
from stepnet_mm.launch import entry
from stepnet_mm.steps.base import step_sizes_of
from stepnet_mm.utils.command_line import aligned, output_file
from stepnet_mm.utils.compilation import refuse_compiled
from stepnet_mm.utils.hook_helpers import unwrap
from stepnet_mm.utils.provenance import measure_into

#: How a file describes Δt -> a column of the table.
COLUMNS = dict(mean='mean', over_samples='SD over images',
               over_positions='SD over positions',
               over_channels='SD over channels')


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


@dataclass
class StepSizeMoments:
    """Δt of one step-size module, over samples and positions.

    A Δt that looks at no input counts as one sample per forward. Of each
    channel, (C,) in float64, C being 1 where channels share their Δt: the mean
    over samples and positions; ``between``, the variance over samples of their
    means over positions; ``within``, the mean over samples of the variance
    over positions.
    """
    samples: int
    mean: torch.Tensor
    between: torch.Tensor
    within: torch.Tensor

    @classmethod
    def of(cls, step_size):
        """Of the Δt of one forward, (N, C, H, W)."""
        values = step_size.detach().double().flatten(2)
        means = values.mean(2)
        return cls(len(values), means.mean(0), means.var(0, unbiased=False),
                   values.var(2, unbiased=False).mean(0))

    def merged(self, other):
        """Of both sets of samples (Chan, Golub and LeVeque 1983)."""
        samples = self.samples + other.samples
        share = other.samples / samples
        apart = other.mean - self.mean
        return StepSizeMoments(
            samples,
            self.mean + share * apart,
            torch.lerp(self.between, other.between, share)
            + share * (1 - share) * apart.square(),
            torch.lerp(self.within, other.within, share))

    def numbers(self):
        """The mean and three standard deviations, as a file has them.

        Over samples and positions they are root mean squares of channels.
        """
        return dict(mean=self.mean.mean().item(),
                    over_samples=self.between.mean().sqrt().item(),
                    over_positions=self.within.mean().sqrt().item(),
                    over_channels=self.mean.std(unbiased=False).item())


def ablate_step_sizes(model, evaluate):
    """Evaluate a network three times: as it is, and with fixed Δt.

    The fixed ones, by channel and by block, are the means over samples and
    positions of the first evaluation: nothing adapts to the input. Returns
    the metrics ``trained``, ``per_channel`` and ``per_block``, and
    :class:`StepSizeMoments` by module.

    Raises:
        ValueError: if the model is compiled, has no step-size module, or
            ``evaluate`` does not run it.
    """
    model = unwrap(model)
    refuse_compiled(model)
    steps, moments = step_sizes_of(model), {}
    if not steps:
        raise ValueError(
            f'model: expected step-size modules in {type(model).__name__}, '
            'got none; build it with backbone.step, or with an attention '
            'module of stepnet_mm.steps')

    def add(name, step_size):
        if len(step_size):
            new, known = StepSizeMoments.of(step_size), moments.get(name)
            moments[name] = known.merged(new) if known else new

    def held(of_mean, name, step_size):
        value = of_mean(moments[name].mean).to(step_size).flatten()
        return value.expand(step_size.size(1)).contiguous().view(1, -1, 1, 1)

    with hooks_on(steps, add):
        metrics = dict(trained=evaluate())
    if not moments:
        raise ValueError('evaluate: expected it to run the step sizes of the '
                         'model, got no call; evaluate this very model')
    ran = {name: steps[name] for name in moments}
    for key, of_mean in dict(per_channel=torch.clone,
                             per_block=torch.mean).items():
        with hooks_on(ran, partial(held, of_mean)):
            metrics[key] = evaluate()
    return metrics, moments


@contextmanager
def hooks_on(steps, function):
    """Call ``function(name, Δt)``; a result other than None replaces Δt."""
    with ExitStack() as hooks:
        for name, step in steps.items():
            hooks.callback(step.delta.register_forward_hook(
                lambda module, args, step_size, name=name: function(
                    name, step_size)).remove)
        yield


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
        steps={name: dict(moments.numbers(), by_channel=moments.mean.tolist())
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
    print_table(('step size', *COLUMNS.values()), [
        (name, [*map(step.get, COLUMNS)])
        for name, step in content['steps'].items()])
    print(f'all numbers: {path}')


if __name__ == '__main__':
    main()
