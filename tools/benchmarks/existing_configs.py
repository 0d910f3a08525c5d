#!/usr/bin/env python
"""Configs of mmdet and mmpretrain as StepNets: built, compared, trained.

python tools/benchmarks/existing_configs.py > table.md

Each config goes through to_stepnet; nothing else of it is changed but where
weights come from: a file with random values in the place of what would be
downloaded, for the stock model and its StepNet alike. A model without such
weights gets all of the stock model's, as by load_from. Then both see the same
small images in eval mode, and the StepNet trains three iterations with its
own optimizer.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import copy
import math
import sys
import tempfile
import time
import traceback
from contextlib import redirect_stdout
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.model import revert_sync_batchnorm
from mmengine.optim import build_optim_wrapper
from mmengine.registry import MODELS
from mmengine.runner import set_random_seed

import stepnet_mm  # noqa: F401  registers modules
from stepnet_mm.config.conversion import (
    find_backbones,
    find_config,
    to_stepnet,
)
from stepnet_mm.launch.entry import set_scope
from stepnet_mm.utils.command_line import command_parser

CONFIGS = '''
mmdet::faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py
mmdet::mask_rcnn/mask-rcnn_r50_fpn_1x_coco.py
mmdet::dcn/cascade-rcnn_r50-dconv-c3-c5_fpn_1x_coco.py
mmdet::gn+ws/mask-rcnn_x50-32x4d_fpn_gn-ws-all_2x_coco.py
mmdet::retinanet/retinanet_r50_fpn_1x_coco.py
mmdet::fcos/fcos_r50-caffe_fpn_gn-head_1x_coco.py
mmdet::atss/atss_r50_fpn_1x_coco.py
mmdet::gfl/gfl_r50_fpn_1x_coco.py
mmdet::vfnet/vfnet_r50_fpn_1x_coco.py
mmdet::detr/detr_r50_8xb2-150e_coco.py
mmdet::deformable_detr/deformable-detr_r50_16xb2-50e_coco.py
mmdet::dino/dino-4scale_r50_8xb2-12e_coco.py
mmdet::solov2/solov2_r50_fpn_1x_coco.py
mmdet::yolof/yolof_r50-c5_8xb8-1x_coco.py
mmdet::queryinst/queryinst_r50_fpn_1x_coco.py
mmdet::mask2former/mask2former_r50_8xb2-lsj-50e_coco.py
mmdet::panoptic_fpn/panoptic-fpn_r50_fpn_1x_coco.py
mmdet::htc/htc_r50_fpn_1x_coco.py
mmdet::grid_rcnn/grid-rcnn_r50_fpn_gn-head_2x_coco.py
mmdet::double_heads/dh-faster-rcnn_r50_fpn_1x_coco.py
mmdet::libra_rcnn/libra-faster-rcnn_r50_fpn_1x_coco.py
mmdet::centernet/centernet_r18-dcnv2_8xb16-crop512-140e_coco.py
mmpretrain::resnet/resnet18_8xb32_in1k.py
mmpretrain::resnet/resnet50_8xb256-rsb-a1-600e_in1k.py
mmpretrain::resnet/resnetv1d50_8xb32_in1k.py
mmpretrain::resnet/resnetv1c50_8xb32_in1k.py
mmpretrain::resnext/resnext50-32x4d_8xb32_in1k.py
mmpretrain::wrn/wide-resnet50_8xb32_in1k.py
mmpretrain::resnet/resnet18_8xb16_cifar10.py
mmpretrain::resnet/resnet50_8xb16_cifar100.py
mmpretrain::resnet/resnet50_8xb8_cub.py
mmpretrain::mocov2/mocov2_resnet50_8xb32-coslr-200e_in1k.py
mmpretrain::simclr/simclr_resnet50_16xb256-coslr-200e_in1k.py
mmpretrain::deit/deit-small_4xb256_in1k.py
'''.split()
EDGE = 224  # px; DINO has more queries than a smaller image has tokens
ITERATIONS = 3


def parse_args():
    parser = command_parser(__doc__)
    parser.add_argument(
        'configs', nargs='*', default=CONFIGS,
        help='to try, as in _base_ (default: a choice of 34)')
    return parser.parse_args()


def pretrained(cfg):
    """The backbones whose config names weights."""
    return [b for b in find_backbones(cfg)
            if isinstance(b.node.get('init_cfg'), dict)
            and b.node.init_cfg.get('type') == 'Pretrained']


def use_local_weights(cfgs, folder):
    """Random weights of the stock backbones, in the place of downloads."""
    for i, (stock, new) in enumerate(zip(*map(pretrained, cfgs))):
        prefix = stock.node.init_cfg.get('prefix', '')
        prefix = prefix and prefix.rstrip('.') + '.'
        net = randomised(MODELS.build(dict(stock.node, init_cfg=None)))
        path = str(folder / f'{i}.pth')
        torch.save({prefix + k: v for k, v in net.state_dict().items()}, path)
        stock.node.init_cfg.checkpoint = new.node.init_cfg.checkpoint = path


def randomised(net):
    """Weights as drawn, statistics and shifts away from their starts."""
    for name, value in net.state_dict().items():
        if name.endswith('running_var'):
            value.uniform_(.5, 2)
        elif name.endswith(('running_mean', 'bias')):
            value.normal_(0, .1)
    return net


def build(cfg):
    """A config's model, initialised, as one process trains it."""
    model = copy.deepcopy(cfg.model)
    if cfg.get('data_preprocessor'):
        model.setdefault('data_preprocessor', cfg.data_preprocessor)
    for pad in model.get('data_preprocessor', {}).get('batch_augments') or ():
        pad.size = (EDGE, EDGE)
    model = revert_sync_batchnorm(MODELS.build(model))
    model.init_weights()
    return model


def build_pair(cfgs, folder):
    """The stock model and its StepNet, of the same weights."""
    use_local_weights(cfgs, folder)
    stock, net = map(build, cfgs)
    loaded = tuple(f'{b.key.removeprefix("model.")}.'
                   for b in pretrained(cfgs[0]))
    weights = (stock if loaded else randomised(stock)).state_dict()
    net.load_state_dict({k: v for k, v in weights.items()
                         if not k.startswith(loaded)}, strict=False)
    return stock, net


def detection_batch(cfg):
    from mmdet.testing import demo_mm_inputs
    return demo_mm_inputs(
        2, [[3, EDGE, EDGE]] * 2, num_classes=3, with_mask=True,
        with_semantic=True, use_box_type=True)


def classification_batch(cfg):
    from mmpretrain.structures import DataSample
    samples = [DataSample().set_gt_label(i) for i in range(2)]
    images = torch.randint(0, 256, (2, 2, 3, EDGE, EDGE))
    views = 'SelfSup' in str([part.get('data_preprocessor')
                              for part in (cfg, cfg.model)])
    return dict(inputs=list(images) if views else images[0],
                data_samples=samples)


def tensors(value):
    """All tensors in what a model gives."""
    if isinstance(value, torch.Tensor):
        return [value]
    if hasattr(value, 'to_dict'):
        value = value.to_dict()
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        value = ()
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
    settings = copy.deepcopy(cfg.optim_wrapper)
    settings.type = 'OptimWrapper'
    wrapper = build_optim_wrapper(model, settings)
    return [float(model.train_step(copy.deepcopy(batch), wrapper)['loss'])
            for _ in range(ITERATIONS)]


def trial(name, folder):
    """A row of the table."""
    begun = time.perf_counter()
    (folder / 'step.py').write_text(to_stepnet(name, str(folder / 'step.py')))
    cfgs = [Config.fromfile(find_config(name)),
            Config.fromfile(folder / 'step.py')]
    set_scope(cfgs[0])
    set_random_seed(0)
    stock, net = build_pair(cfgs, folder)
    detection = find_backbones(cfgs[0])[0].library == 'mmdet'
    batch = (detection_batch if detection else classification_batch)(cfgs[0])
    ours, theirs = (outputs(model, batch) for model in (net, stock))
    same = len(ours) == len(theirs) and all(map(torch.equal, ours, theirs))
    losses = train(net, cfgs[1], batch)
    shown = ' '.join(f'{loss:.4g}' for loss in losses)
    if not all(map(math.isfinite, losses)):
        shown = f'NOT FINITE {shown}'
    return (name, ', '.join(b.name for b in find_backbones(cfgs[1])),
            str(len(ours)) if same else 'NO',
            shown,
            f'{time.perf_counter() - begun:.0f}')


def main():
    args = parse_args()
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
