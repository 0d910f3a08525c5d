#!/usr/bin/env python
"""Parameters, FLOPs, latency and memory of a config's model, by stage.

The model is built with random weights: nothing is loaded or downloaded.
OMP_NUM_THREADS sets the threads on a CPU.

python tools/analysis/model_report.py configs/faster_rcnn_r50_stepnet.py
"""
import argparse
import copy
import functools
import json
import resource
import sys
import textwrap
import time
from collections import Counter
from contextlib import ExitStack, contextmanager, redirect_stdout

import numpy as np
import torch
from mmengine.analysis import FlopAnalyzer, parameter_count
from mmengine.config import DictAction
from mmengine.registry import MODELS, init_default_scope
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import stepnet_mm  # noqa: F401  registers modules
from stepnet_mm import config as C
from stepnet_mm.steps import StepSize

# The CPU's fused attention is the one that the counter does not know.
try:
    from torch.nn.attention import SDPBackend, sdpa_kernel
    plain_attention = functools.partial(sdpa_kernel, SDPBackend.MATH)
except ImportError:  # torch below 2.3
    plain_attention = functools.partial(
        torch.backends.cuda.sdp_kernel, enable_flash=False,
        enable_mem_efficient=False)

#: Runs before the timed ones: caches, thread pools, cuDNN's choices.
WARM_RUNS = 2
#: The default image edge in px, where a config names none.
EDGE = 224
COLUMNS = ('parameters', 'step_parameters', 'mmengine_flops', 'torch_flops')
NOTES = (
    "FLOPs: one image, forward pass (mode='tensor') in eval mode. The two "
    'counters disagree by definition.',
    'mmengine: a multiply-add is one. Counts convolutions, linear layers, '
    'matrix products and einsum, and also norms (BatchNorm 1 or 2 an element, '
    'others 4 or 5), adaptive average pooling (1 an input element), '
    'upsampling and grid sampling (1 or 4 an output element).',
    'torch: a multiply-add is two. Counts convolutions and matrix products '
    '(linear layers, einsum, attention), nothing else.',
    'Neither counts biases, activations, means, sums or elementwise '
    'products, so most of what a step-size or attention module does is '
    'unseen here: compare the latency.')


class Forward(nn.Module):
    """The tensor mode of a model as a function of the images alone.

    Args:
        model (BaseModel): a classifier or a detector.
        samples (list): a data sample for each image.
    """

    def __init__(self, model, samples):
        super().__init__()
        self.model = model
        self.samples = samples

    def forward(self, images):
        """(N, 3, H, W) -> the tensors of the heads."""
        return self.model(images, self.samples, mode='tensor')


def positive(text):
    """An argument that is an integer from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(
            f'expected a positive integer, got {text!r}')
    return int(text)


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('config', help='config file')
    parser.add_argument(
        '--image-size',
        nargs=2,
        type=positive,
        metavar=('H', 'W'),
        help="px; default: the pipelines' size in the config, else "
        f'{EDGE} {EDGE}. A detector at its full size takes long on a CPU')
    parser.add_argument(
        '--batch-size', type=positive, default=1, help='of the timed runs')
    parser.add_argument('--device', default='cpu', help='cpu, cuda, cuda:1')
    parser.add_argument(
        '--runs', type=positive, default=10, help='timed runs')
    parser.add_argument(
        '--train',
        action='store_true',
        help='time the loss and its backward pass in place of a forward pass')
    parser.add_argument(
        '--format', choices=['text', 'markdown', 'json'], default='text')
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=DictAction,
        help='changes to the config, key=value; lists as key="[a,b]"')
    return parser.parse_args()


def check_device(name):
    """The device of that name.

    Raises:
        ValueError: if it is neither a CPU nor a GPU that torch sees.
    """
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ('cpu', 'cuda'):
        raise ValueError(f'--device: got {name!r}, expected cpu, cuda or '
                         'cuda:INDEX')
    present = torch.cuda.device_count()
    if device.type == 'cuda' and (device.index or 0) >= present:
        raise ValueError(f'--device: got {name!r}, but torch sees {present} '
                         'CUDA devices')
    return device


def image_size(cfg):
    """Height and width in px of a config's images, and where they stand.

    It is the last crop or resize of the first pipeline that has one: test,
    validation, training.
    """
    for name in C.EVALUATION[::-1] + C.TRAIN:
        for transform in reversed(transforms(cfg.get(name) or {})):
            edges = transform.get('crop_size') or transform.get('scale')
            if isinstance(edges, int):
                return (edges, edges), name
            if isinstance(edges, (list, tuple)) and all(
                    isinstance(edge, int) for edge in edges):
                return tuple(edges[::-1]), name
    return (EDGE, EDGE), 'default'


def transforms(node):
    """The pipeline of the innermost dataset of a data loader."""
    while 'pipeline' not in node and isinstance(node.get('dataset'), dict):
        node = node['dataset']
    return node.get('pipeline') or []


def build_model(cfg, device):
    """The model with random weights; its ``init_cfg`` is not followed."""
    torch.manual_seed(0)
    return MODELS.build(copy.deepcopy(cfg.model)).to(device).eval()


def make_inputs(cfg, model, size, batch_size, device):
    """Random images (N, 3, H, W), padded as the model asks, and samples."""
    if cfg.default_scope == 'mmpretrain':
        from mmpretrain.structures import DataSample
        samples = [DataSample().set_gt_label(0) for _ in range(batch_size)]
        return (torch.randn(batch_size, 3, *size, device=device),
                [sample.to(device) for sample in samples])
    from mmdet.testing import demo_mm_inputs
    packed = demo_mm_inputs(
        batch_size, (3, *size),
        num_items=[8] * batch_size,
        with_mask=model.with_mask,
        device=device)
    for sample in packed['data_samples']:
        sample.gt_instances.labels.zero_()
    data = model.data_preprocessor(packed)
    return data['inputs'], data['data_samples']


@torch.no_grad()
def try_forward(forward, images):
    """Run a model once.

    Raises:
        ValueError: if it does not take images of this size.
    """
    try:
        forward(images)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(
            f'--image-size: {type(forward.model).__name__} does not take '
            f'images of shape {tuple(images.shape)}, (N, C, H, W): {error}'
        ) from error


def inside(name, parent):
    """Whether a module is another one, or in it."""
    return not parent or name == parent or name.startswith(f'{parent}.')


def find_steps(model):
    """Names of the step-size modules -> modules, the outermost ones."""
    found = {}
    for name, module in model.named_modules():
        if isinstance(module, StepSize) and not any(
                inside(name, other) for other in found):
            found[name] = module
    return found


@contextmanager
def _flops_before_and_after(model, counter, called):
    """Fill ``called`` by module; the counter of torch 2.1 does it wrongly."""
    starts = []

    def begin(module, args):
        starts.append(counter.get_total_flops())

    def end(name, module, args, output):
        called[name] += counter.get_total_flops() - starts.pop()

    with ExitStack() as hooks:
        for name, module in model.named_modules():
            hooks.enter_context(module.register_forward_pre_hook(begin))
            hooks.enter_context(module.register_forward_hook(
                functools.partial(end, name)))
        yield


@torch.no_grad()
def torch_flops(forward, images):
    """Module names -> FLOPs of torch's counter.

    It knows only modules that are called; a container (and mmdet's RoI head)
    costs what its children do.
    """
    counter, called, flops = FlopCounterMode(display=False), Counter(), {}
    with plain_attention(), counter, _flops_before_and_after(
            forward.model, counter, called):
        forward(images)

    def visit(name, module):
        children = sum(
            visit(f'{name}.{key}'.lstrip('.'), child)
            for key, child in module.named_children())
        flops[name] = max(called[name], children)
        return flops[name]

    visit('', forward.model)
    return flops


@torch.no_grad()
def mmengine_flops(forward, images):
    """Module names -> FLOPs of mmengine, and the operators left out."""
    analyzer = FlopAnalyzer(forward, images)
    analyzer.unsupported_ops_warnings(False).uncalled_modules_warnings(False)
    flops = {
        name: int(analyzer.total(f'model.{name}'.rstrip('.')))
        for name, _ in forward.model.named_modules()
    }
    return flops, analyzer.unsupported_ops()


@contextmanager
def watch_regions(model):
    """A list that takes the number of regions of each cut from features."""
    regions = []
    hooks = [
        module.register_forward_pre_hook(
            lambda _, args: regions.append(len(args[1])))
        for module in model.modules()
        if type(module).__name__.endswith('RoIExtractor')
    ]
    yield regions
    for hook in hooks:
        hook.remove()


def count_modules(forward, images):
    """Module names -> (4,) counts in the order of COLUMNS; left-out ops."""
    model = forward.model
    parameters, steps = parameter_count(model), find_steps(model)
    by_mmengine, left_out = mmengine_flops(forward, images)
    by_torch = torch_flops(forward, images)
    counts = {
        name: np.array([
            parameters[name],
            sum(parameters[step] for step in steps if inside(step, name)),
            by_mmengine[name], by_torch[name]
        ])
        for name, _ in model.named_modules()
    }
    return counts, left_out


def group_parts(model, counts):
    """Parts of a model -> (4,) counts, with their total at the end.

    Args:
        model (nn.Module): its children are the parts, but its ``backbone``
            is taken apart by stage.
        counts (dict): module names -> (4,) counts.
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
    """Stages of a backbone -> (4,) counts, with the stem and the tail.

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


def forward_run(forward, images):
    """A function that runs a forward pass."""
    return torch.no_grad()(lambda: forward(images))


def train_run(forward, images):
    """A function that runs the loss and its backward pass."""
    model = forward.model.train()

    def run():
        model.zero_grad(set_to_none=True)
        losses = model(images, forward.samples, mode='loss')
        model.parse_losses(losses)[0].backward()

    return run


def time_runs(run, number, device):
    """Milliseconds of each of ``number`` runs, after the warm ones."""
    times = []
    for _ in range(WARM_RUNS + number):
        start = time.perf_counter()
        run()
        if device.type == 'cuda':
            torch.cuda.synchronize(device)
        times.append(1e3 * (time.perf_counter() - start))
    return times[WARM_RUNS:]


def peak_memory(device):
    """Bytes: of CUDA tensors, or the resident set of this process."""
    if device.type == 'cuda':
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(cfg, args, size, device):
    """Latency and peak memory of a model of its own, and its input shape.

    It comes before the counting, whose traces take memory too.
    """
    before = peak_memory(device)
    model = build_model(cfg, device)
    images, samples = make_inputs(cfg, model, size, args.batch_size, device)
    forward = Forward(model, samples)
    try_forward(forward, images)
    run = (train_run if args.train else forward_run)(forward, images)
    low, median, high = np.percentile(
        time_runs(run, args.runs, device), [25, 50, 75])
    latency = dict(
        timed='loss and backward' if args.train else 'forward',
        median_ms=median,
        iqr_ms=high - low,
        runs=args.runs,
        warm_runs=WARM_RUNS,
        input_shape=list(images.shape),
        dtype=str(images.dtype).rpartition('.')[2],
        device=device_name(device),
        threads=torch.get_num_threads(),
        torch=torch.__version__)
    memory = dict(
        kind='CUDA tensors' if device.type == 'cuda' else 'resident set',
        peak_bytes=peak_memory(device),
        before_bytes=before)
    return latency, memory


def device_name(device):
    if device.type == 'cuda':
        return torch.cuda.get_device_name(device)
    return str(device)


def make_report(args):
    """Everything that is printed, as a dict that JSON takes.

    Raises:
        ValueError: if the config has no model of mmdet or mmpretrain, or the
            model does not take the image size.
    """
    device = check_device(args.device)
    cfg = C.read_config(args.config, options=args.cfg_options)
    scope = cfg.get('default_scope')
    if scope not in ('mmdet', 'mmpretrain') or not cfg.get('model'):
        raise ValueError(
            f'{args.config}: expected a model and default_scope mmdet or '
            f'mmpretrain, got {scope!r} and the keys {sorted(cfg)}')
    init_default_scope(scope)
    size, source = image_size(cfg)
    if args.image_size:
        size, source = tuple(args.image_size), '--image-size'
    latency, memory = measure(cfg, args, size, device)
    return dict(
        config=args.config,
        image_size=list(size),
        image_size_from=source,
        **count(cfg, size, device),
        latency=latency,
        memory=memory)


def count(cfg, size, device):
    """The counts of a model for one image."""
    model = build_model(cfg, device)
    images, samples = make_inputs(cfg, model, size, 1, device)
    forward = Forward(model, samples)
    with watch_regions(model) as regions:
        counts, left_out = count_modules(forward, images)
    steps = find_steps(model)
    return dict(
        model=type(model).__name__,
        backbone=type(getattr(model, 'backbone', None)).__name__,
        input_shape=list(images.shape),
        steps=dict(
            types=dict(Counter(type(m).__name__ for m in steps.values())),
            **named(sum((counts[name] for name in steps), 0 * counts['']))),
        parts=[
            dict(part=name, **named(row))
            for name, row in group_parts(model, counts).items()
        ],
        regions=max(regions, default=0),
        mmengine_left_out={
            name.rpartition('::')[2]: number
            for name, number in left_out.most_common()
        })


def named(row):
    """(4,) counts -> column names -> counts."""
    return dict(zip(COLUMNS, row.tolist()))


def table(report):
    """Rows of text cells, headings first."""
    large = report['parts'][-1]['mmengine_flops'] >= 1e9
    scale, unit = (1e9, 'G') if large else (1e6, 'M')
    rows = [('part', 'parameters', 'of which steps',
             f'FLOPs, mmengine ({unit})', f'FLOPs, torch ({unit})')]
    for part in report['parts']:
        parameters, steps, *flops = (part[key] for key in COLUMNS)
        rows.append((part['part'], f'{parameters:,}', f'{steps:,}',
                     *(f'{value / scale:,.3f}' for value in flops)))
    return rows


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
        f'{steps["mmengine_flops"]:,} FLOPs (mmengine), '
        f'{steps["torch_flops"]:,} (torch)' if kinds else '')


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
    yield describe_latency(report['latency'])
    yield describe_memory(report['memory'])


def describe_latency(latency):
    shape = ' x '.join(map(str, latency['input_shape']))
    return (
        f'latency ({latency["timed"]}): median {latency["median_ms"]:.1f} ms, '
        f'interquartile range {latency["iqr_ms"]:.1f} ms; {latency["runs"]} '
        f'runs after {latency["warm_runs"]} warm ones; input {shape}, '
        f'{latency["dtype"]}; device {latency["device"]}, threads '
        f'{latency["threads"]}, torch {latency["torch"]}')


def describe_memory(memory):
    peak, before = (memory[key] / 2**20
                    for key in ('peak_bytes', 'before_bytes'))
    return (f'peak memory up to the last timed run: {peak:,.0f} MiB '
            f'({memory["kind"]} of this process), {before:,.0f} MiB of it '
            'before the model was built')


def as_text(report):
    """Sentences and a table that fit a terminal."""
    rows = table(report)
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = [
        '  '.join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths)))
        for row in rows
    ]
    return '\n'.join([*map(wrap, heading(report)), '', *lines, '',
                      *map(wrap, notes(report))])


def wrap(sentence):
    return textwrap.fill(sentence, 79, subsequent_indent='  ')


def as_markdown(report):
    """The same as a list, a table and a list."""
    first, *rows = ['| ' + ' | '.join(row) + ' |' for row in table(report)]
    rule = '|---|' + '---:|' * len(COLUMNS)
    return '\n'.join([*map('- {}'.format, heading(report)), '', first, rule,
                      *rows, '', *map('- {}'.format, notes(report))])


def as_json(report):
    return json.dumps(report, indent=2)


def main():
    args = parse_args()
    # mmengine logs to stdout, which may be a file of JSON here.
    with redirect_stdout(sys.stderr):
        report = make_report(args)
    print(dict(text=as_text, markdown=as_markdown, json=as_json)[args.format](
        report))


if __name__ == '__main__':
    main()
