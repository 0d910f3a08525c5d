#!/usr/bin/env python
r"""Configs of mmdet and mmpretrain as StepNets: built, compared, trained.

python tools/benchmarks/existing_configs.py CONFIG ... > table.md

The configs of docs/results/existing_configs.md:
grep -oE '^\| mm\w+::\S+' docs/results/existing_configs.md | cut -c 3- |
  xargs python tools/benchmarks/existing_configs.py

Each config goes through to_stepnet; nothing else of it is changed but that
nothing is downloaded: the StepNet gets the weights of the stock model, which
are random, as by load_from. Then both see the same small images in eval mode,
and the StepNet trains three iterations with its own optimizer.
"""
import stepnet_mm.utils.interrupts  # Ctrl-C from here on

import copy
import sys
import tempfile
import time
import traceback
from contextlib import redirect_stdout
from pathlib import Path

import torch
from mmengine.config import Config, ConfigDict
from mmengine.optim import build_optim_wrapper
from mmengine.runner import set_random_seed

import stepnet_mm  # registers modules
from stepnet_mm.config import conversion
from stepnet_mm.config.conversion import find_backbones
from stepnet_mm.launch.entry import build_model
from stepnet_mm.utils.command_line import command_parser

EDGE = 224  # px; DINO has more queries than a smaller image has tokens
ITERATIONS = 3


def build_pair(cfgs):
    """The stock model and its StepNet: equal weights, not those of a start."""
    for cfg in cfgs:
        for backbone in find_backbones(cfg):
            backbone.node.init_cfg = None
        preprocessor = cfg.model.get('data_preprocessor') or {}
        for pad in preprocessor.get('batch_augments') or ():
            pad.size = (EDGE, EDGE)
    stock, net = map(build_model, cfgs)
    for backbone in find_backbones(cfgs[0]):
        part = stock.get_submodule(backbone.key.removeprefix('model.'))
        for name, value in part.state_dict().items():
            if name.endswith('running_var'):
                value.uniform_(.5, 2)
            elif name.endswith(('running_mean', 'bias')):
                value.normal_(0, .1)
    net.load_state_dict(stock.state_dict(), strict=False)
    return stock, net


def make_batch(cfg):
    """Two images with labels, as a data loader gives them."""
    if find_backbones(cfg)[0].library == 'mmdet':
        from mmdet.testing import demo_mm_inputs
        return demo_mm_inputs(
            2, [[3, EDGE, EDGE]] * 2, num_classes=3, with_mask=True,
            with_semantic=True, use_box_type=True)
    from mmpretrain.structures import DataSample
    images = torch.randint(0, 256, (2, 2, 3, EDGE, EDGE))
    views = 'SelfSup' in str([part.get('data_preprocessor')
                              for part in (cfg, cfg.model)])
    return dict(inputs=list(images) if views else images[0],
                data_samples=[DataSample().set_gt_label(i) for i in range(2)])


def tensors(value):
    """All tensors in what a model gives."""
    if isinstance(value, torch.Tensor):
        return [value]
    if hasattr(value, 'to_dict'):
        value = value.to_dict()
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [tensor for part in value for tensor in tensors(part)]


@torch.no_grad()
def outputs(model, batch):
    """The features, and the predictions of a model that makes any."""
    set_random_seed(0)
    model.eval()
    data = model.data_preprocessor(copy.deepcopy(batch), False)
    images = data['inputs']
    found = [model.extract_feat(
        images[0] if isinstance(images, list) else images)]
    try:
        found.append(model(**data, mode='predict'))
    except (NotImplementedError, RuntimeError) as error:
        print('#', type(error).__name__, error)
    return tensors(found)


def train(model, cfg, batch):
    """The losses of some iterations."""
    model.train()
    wrapper = build_optim_wrapper(
        model, ConfigDict(cfg.optim_wrapper, type='OptimWrapper'))
    return [model.train_step(copy.deepcopy(batch), wrapper)['loss'].item()
            for _ in range(ITERATIONS)]


def trial(name, folder):
    """A row of the table."""
    begun = time.perf_counter()
    path = folder / 'step.py'
    path.write_text(conversion.to_stepnet(name, str(path)))
    cfgs = [Config.fromfile(each)
            for each in (conversion.find_config(name), path)]
    stock, net = build_pair(cfgs)
    batch = make_batch(cfgs[0])
    ours, theirs = (outputs(model, batch) for model in (net, stock))
    same = len(ours) == len(theirs) and all(map(torch.equal, ours, theirs))
    losses = train(net, cfgs[1], batch)
    return (name, ', '.join(b.name for b in find_backbones(cfgs[1])),
            str(len(ours)) if same else 'NO',
            ' '.join(f'{loss:.4g}' for loss in losses),
            f'{time.perf_counter() - begun:.0f}')


def main():
    parser = command_parser(__doc__)
    parser.add_argument('configs', nargs='+', help='to try, as in _base_')
    args = parser.parse_args()
    print('| config | backbone | equal tensors in eval | loss | s |')
    print('|---|---|---|---|---|')
    for name in args.configs:
        with tempfile.TemporaryDirectory() as folder, redirect_stdout(
                sys.stderr):  # for mmengine's log
            try:
                row = trial(name, Path(folder))
            except Exception as error:
                traceback.print_exc()
                row = name, f'FAILED: {type(error).__name__}: {error}'
        print('|', ' | '.join(row), '|', flush=True)


if __name__ == '__main__':
    main()
