#!/usr/bin/env python
"""Parameters, FLOPs, latency and memory of a config's model, by stage.

The model is built with random weights: nothing is loaded or downloaded.
OMP_NUM_THREADS sets the threads on a CPU.

python tools/analysis/model_report.py configs/faster_rcnn_r50_stepnet.py
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import json
import sys
import textwrap
from collections import Counter
from contextlib import redirect_stdout
from functools import partial

import numpy as np
import torch
from mmengine.analysis import FlopAnalyzer, parameter_count
from torch import nn

import stepnet_mm  # noqa: F401  registers modules
from stepnet_mm import config as C
from stepnet_mm.profiling import (
    Contestant,
    image_size,
    interleave,
    peak_bytes,
    prepare,
)
from stepnet_mm.profiling.config_inputs import EDGE
from stepnet_mm.profiling.timing import WARM_RUNS
from stepnet_mm.steps import StepSize
from stepnet_mm.utils.command_line import aligned, command_parser, positive

COLUMNS = ('parameters', 'step_parameters', 'mmengine_flops')
NOTES = (
    "FLOPs: mmengine's, of one image, forward pass (mode='tensor') in eval "
    'mode; a multiply-add is one. It counts convolutions, linear layers, '
    'matrix products and einsum, and also norms (BatchNorm 1 or 2 an element, '
    'others 4 or 5), adaptive average pooling (1 an input element), '
    'upsampling and grid sampling (1 or 4 an output element).',
    'Biases, activations, means, sums and elementwise products are not '
    'counted (mmengine_left_out), so most of what a step-size or attention '
    'module does is unseen here: compare the latency.',
    'FLOPs of a RoI head grow with the number of regions, which random '
    'weights propose here.',
    'memory: the peak up to the last timed run, and what of it was in use '
    'before the model was built.')


def parse_args():
    parser = command_parser(__doc__)
    parser.add_argument('config', help='config file')
    parser.add_argument(
        '--image-size', nargs=2, type=positive, metavar=('H', 'W'),
        help='px; a detector at its full size takes long on a CPU (default: '
        f"the pipelines' size in the config, else {EDGE} {EDGE})")
    parser.add_argument(
        '--batch-size', type=positive, default=1, help='of the timed runs')
    parser.add_argument('--device', default='cpu', help='cpu, cuda, cuda:1')
    parser.add_argument(
        '--runs', type=positive, default=10, help='timed runs')
    parser.add_argument(
        '--format', choices=['text', 'json'], default='text',
        help='of what is printed')
    parser.add_argument(
        '--cfg-options', nargs='+', action=C.OptionsAction,
        help='changes to the config, key=value; lists as key="[a,b]"')
    return parser.parse_args()


def make_report(args):
    """Everything that is printed, as a dict for JSON.

    Raises:
        ValueError: if the config has no model of mmdet or mmpretrain.
    """
    device = torch.device(args.device)
    cfg = C.read_config(args.config, options=args.cfg_options)
    if not C.library_of(cfg):
        raise ValueError(
            f'{args.config}: default_scope: expected mmdet or mmpretrain, got '
            f'{cfg.get("default_scope")!r}; set it')
    size, source = image_size(cfg)
    if args.image_size:
        size, source = tuple(args.image_size), '--image-size'
    # Before the counting, whose traces take memory too.
    latency, memory = time_model(cfg, args, size, device)
    return dict(
        config=args.config,
        image_size=list(size),
        image_size_from=source,
        **count(*prepare(cfg, size, 1, device)),
        latency=latency,
        memory=memory)


def time_model(cfg, args, size, device):
    """Latency and peak memory of a forward pass of a new model."""
    before = peak_bytes(device)
    forward, images = prepare(cfg, size, args.batch_size, device)
    one = Contestant(forward.model, images, forward)
    taken = interleave(
        dict(one=partial(one.seconds, 'infer')), args.runs)['one']
    low, median, high = 1e3 * np.percentile(taken, [25, 50, 75])
    latency = dict(
        median_ms=median,
        iqr_ms=high - low,
        runs=args.runs,
        warm_runs=WARM_RUNS,
        input_shape=list(images.shape),
        dtype=str(images.dtype).rpartition('.')[2],
        device=torch.cuda.get_device_name(device) if images.is_cuda
        else str(device),
        threads=torch.get_num_threads(),
        torch=torch.__version__)
    return latency, dict(
        kind='CUDA tensors' if images.is_cuda else 'resident set',
        peak_bytes=peak_bytes(device),
        before_bytes=before)


def count(forward, images):
    """The counts of a model for one image (1, C, H, W), by part."""
    model = forward.model
    flops, left_out = mmengine_flops(forward, images)
    parameters, steps = parameter_count(model), find_steps(model)
    counts = {name: np.array([
        parameters[name],
        sum(parameters[step] for step in steps if is_inside(step, name)),
        flops[name]]) for name, _ in model.named_modules()}
    of_steps = sum((counts[name] for name in steps), 0 * counts[''])
    return dict(
        model=type(model).__name__,
        backbone=type(getattr(model, 'backbone', None)).__name__,
        input_shape=list(images.shape),
        steps=dict(
            types=dict(Counter(type(m).__name__ for m in steps.values())),
            **dict(zip(COLUMNS, of_steps.tolist()))),
        parts=[dict(zip(('part', *COLUMNS), (name, *row.tolist())))
               for name, row in group_parts(model, counts).items()],
        mmengine_left_out={name.rpartition('::')[2]: number
                           for name, number in left_out.most_common()})


@torch.no_grad()
def mmengine_flops(forward, images):
    """Module names -> FLOPs of mmengine, and the operators left out."""
    analyzer = FlopAnalyzer(forward, images)
    analyzer.unsupported_ops_warnings(False).uncalled_modules_warnings(False)
    flops = {name: int(analyzer.total(f'model.{name}'.rstrip('.')))
             for name, _ in forward.model.named_modules()}
    return flops, analyzer.unsupported_ops()


def find_steps(model):
    """Names of the step-size modules -> modules, the outermost ones."""
    found = {}
    for name, module in model.named_modules():
        if isinstance(module, StepSize) and not any(
                is_inside(name, other) for other in found):
            found[name] = module
    return found


def is_inside(name, parent):
    """Whether a module is another one, or in it."""
    return not parent or name == parent or name.startswith(f'{parent}.')


def group_parts(model, counts):
    """Parts of a model -> (3,) counts, with their total at the end.

    The parts are its children, but its backbone is taken apart into stages,
    which are its sequences of blocks, and the stem, which is all else in it.

    Args:
        model (nn.Module): a classifier or a detector.
        counts (dict): module names -> (3,) counts.
    """
    parts = {name: counts[name] for name, _ in model.named_children()}
    backbone = getattr(model, 'backbone', nn.Module())
    stages = {name: counts[f'backbone.{name}']
              for name, child in backbone.named_children()
              if isinstance(child, (nn.Sequential, nn.ModuleList))
              and name != 'stem'}
    if stages:
        stem = parts.pop('backbone') - sum(stages.values())
        parts = dict(stem=stem, **stages, **parts)
    parts['other'] = counts[''] - sum(parts.values())
    return {k: v for k, v in parts.items() if v.any()} | {'total': counts['']}


def table(report):
    """The parts with their counts, headings first."""
    large = report['parts'][-1]['mmengine_flops'] >= 1e9
    scale, unit = (1e9, 'G') if large else (1e6, 'M')
    return aligned([('part', 'parameters', 'of which steps',
                     f'FLOPs ({unit})'), *(
        (part['part'], f'{part["parameters"]:,}',
         f'{part["step_parameters"]:,}',
         f'{part["mmengine_flops"] / scale:,.3f}')
        for part in report['parts'])])


def described(value):
    """A value of the report in a line."""
    if isinstance(value, dict):
        return ', '.join(f'{k} {described(v)}' for k, v in value.items())
    if isinstance(value, list):
        return ' x '.join(map(str, value))
    if isinstance(value, (int, float)):
        return f'{value:,}' if isinstance(value, int) else f'{value:.4g}'
    return str(value)


def as_text(report):
    """Lines and a table that fit a terminal."""
    wrap = partial(textwrap.fill, width=79, subsequent_indent='  ')
    facts = [f'{key}: {described(value)}' for key, value in report.items()
             if key != 'parts']
    return '\n'.join([*map(wrap, facts), '', table(report), '',
                      *map(wrap, NOTES)])


def main():
    args = parse_args()
    # mmengine logs to stdout, which may be a file of JSON here.
    with redirect_stdout(sys.stderr):
        report = make_report(args)
    print(as_text(report) if args.format == 'text'
          else json.dumps(report, indent=2))


if __name__ == '__main__':
    main()
