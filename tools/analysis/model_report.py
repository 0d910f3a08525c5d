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
    'counted, so most of what a step-size or attention module does is '
    'unseen here: compare the latency.')


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


def check_device(name):
    """The device of that name.

    Raises:
        ValueError: if torch cannot use it.
    """
    try:
        return torch.zeros(1, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise ValueError(
            f'--device: expected cpu, cuda or cuda:INDEX, one of the '
            f'{torch.cuda.device_count()} CUDA devices that torch sees, got '
            f'{name!r}; take cpu') from error


def make_report(args):
    """Everything that is printed, as a dict for JSON.

    Raises:
        ValueError: if the config has no model of mmdet or mmpretrain, or the
            model does not take the image size.
    """
    device = check_device(args.device)
    cfg = C.read_config(args.config, options=args.cfg_options)
    if not C.library_of(cfg) or not cfg.get('model'):
        raise ValueError(
            f'{args.config}: expected a model and default_scope mmdet or '
            f'mmpretrain, got {cfg.get("default_scope")!r} and the keys '
            f'{sorted(cfg)}; set both')
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
    """Latency and peak memory of a forward pass of a new model.

    Raises:
        ValueError: if it does not take images of this size.
    """
    before = peak_bytes(device)
    forward, images = prepare(cfg, size, args.batch_size, device)
    check(forward, images)
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


@torch.no_grad()
def check(forward, images):
    """Run the model once, and say what is wrong with the size."""
    try:
        forward(images)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(
            f'image_size: expected one that {type(forward.model).__name__} '
            f'takes, got images of shape {tuple(images.shape)}, (N, C, H, '
            f'W); choose another --image-size: {error}') from error


def count(forward, images):
    """The counts of a model for one image (1, C, H, W), by part."""
    model, regions = forward.model, []
    watch = [module.register_forward_pre_hook(
        lambda _, args: regions.append(len(args[1])))
        for module in model.modules()
        if type(module).__name__.endswith('RoIExtractor')]
    flops, left_out = mmengine_flops(forward, images)
    for hook in watch:
        hook.remove()
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
        regions=max(regions, default=0),
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

    Args:
        model (nn.Module): its children are the parts, but its ``backbone``
            is taken apart by stage.
        counts (dict): module names -> (3,) counts.
    """
    parts = {}
    for name, child in model.named_children():
        if name == 'backbone':
            parts.update(group_stages(child, counts))
        else:
            parts[name] = counts[name]
    parts['other'] = counts[''] - sum(parts.values())
    return {k: v for k, v in parts.items() if v.any()} | {'total': counts['']}


def group_stages(backbone, counts):
    """Stages of a backbone -> (3,) counts, with the stem and the tail.

    Stages are its sequences of blocks. What it registers after the first
    stage is the tail (a last norm), everything else the stem.
    """
    children = dict(backbone.named_children())
    stages = [
        name for name, child in children.items()
        if isinstance(child, (nn.Sequential, nn.ModuleList)) and name != 'stem'
    ]
    if not stages:
        return dict(backbone=counts['backbone'])
    later = list(children)[list(children).index(stages[0]):]
    inner = {name: counts[f'backbone.{name}'] for name in later}
    tail = sum(
        (inner.pop(name) for name in later if name not in stages),
        np.zeros_like(counts['backbone']))
    stem = counts['backbone'] - sum(inner.values()) - tail
    return dict(stem=stem, **inner, tail=tail)


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


def heading(report):
    """Sentences above the table."""
    yield (f'{report["config"]}: {report["model"]} with '
           f'{report["backbone"]}, random weights')
    size, padded = report['image_size'], report['input_shape'][2:]
    yield (f'image: {size[0]} x {size[1]} px ({report["image_size_from"]})' +
           (f', padded to {padded[0]} x {padded[1]}' * (padded != size)))
    steps = report['steps']
    kinds = ', '.join(f'{n} {kind}' for kind, n in steps['types'].items())
    yield f'step-size modules: {kinds or "none"}' + (
        f'; they add {steps["parameters"]:,} parameters and '
        f'{steps["mmengine_flops"]:,} FLOPs' if kinds else '')


def notes(report):
    """Sentences under the table."""
    yield from NOTES
    left_out = report['mmengine_left_out'].items()
    yield 'mmengine saw and left out: ' + (
        ', '.join(f'{name} ({n})' for name, n in left_out) or 'nothing')
    if report['regions']:
        yield (f'the RoI head looked at {report["regions"]} regions, as many '
               'as random weights propose at this image size; its FLOPs grow '
               'with their number')
    shape = ' x '.join(map(str, report['latency']['input_shape']))
    yield ('latency: median {median_ms:.1f} ms, interquartile range '
           '{iqr_ms:.1f} ms; {runs} runs after {warm_runs} warm ones; input '
           '{shape}, {dtype}; device {device}, threads {threads}, torch '
           '{torch}'.format(shape=shape, **report['latency']))
    memory = report['memory']
    yield (f'peak memory up to the last timed run: '
           f'{memory["peak_bytes"] / 2**20:,.0f} MiB ({memory["kind"]} of '
           f'this process), {memory["before_bytes"] / 2**20:,.0f} MiB of it '
           'before the model was built')


def as_text(report):
    """Sentences and a table that fit a terminal."""
    wrap = partial(textwrap.fill, width=79, subsequent_indent='  ')
    return '\n'.join([*map(wrap, heading(report)), '', table(report), '',
                      *map(wrap, notes(report))])


def main():
    args = parse_args()
    # mmengine logs to stdout, which may be a file of JSON here.
    with redirect_stdout(sys.stderr):
        report = make_report(args)
    print(as_text(report) if args.format == 'text'
          else json.dumps(report, indent=2))


if __name__ == '__main__':
    main()
