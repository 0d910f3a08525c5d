"""Whole models pickle, copy and go to another process."""
import copy
import io
import multiprocessing
import pickle

import pytest
import torch
from equality import BOTH, put_sum

SMALL = dict(base_channels=8, stem_channels=8)
R18 = dict(type='StepResNet', depth=18, **SMALL)


def by_pickle(model):
    return pickle.loads(pickle.dumps(model))


def by_torch(model):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def assert_twins(ours, theirs, call):
    assert type(ours) is type(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.eval(), theirs.eval()
    with torch.no_grad():
        for a, b in zip(call(ours), call(theirs)):
            assert torch.equal(a, b)


@pytest.mark.core
@BOTH
@pytest.mark.parametrize('way, kind, depth', [
    (by_pickle, 'StepResNet', 18), (by_torch, 'StepResNet', 50),
    (copy.deepcopy, 'StepResNeXt', 50)])
def test_backbones(models, way, kind, depth):
    net = models.build(dict(type=kind, depth=depth, **SMALL))
    x = torch.randn(1, 3, 64, 64)
    assert_twins(way(net), net, lambda net: net(x))


@pytest.mark.parametrize('way', [by_pickle, copy.deepcopy])
@pytest.mark.parametrize('cfg', [
    dict(type='StepResNetCIFAR', depth=20),
    dict(type='StepResNetCIFAR', depth=14, block='basic', preact=True),
    dict(type='StepVisionTransformer', img_size=32, arch=dict(
        embed_dims=32, num_layers=2, num_heads=4, feedforward_channels=48))])
def test_mmpretrains_alone(models, cfg, way):
    net = models.build(cfg)
    x = torch.randn(1, 3, 32, 32)
    assert_twins(way(net), net, lambda net: net(x))


def detector():
    pytest.importorskip('mmdet')
    from mmdet.registry import MODELS
    from mmengine.hub import get_config
    from mmengine.registry import init_default_scope
    init_default_scope('mmdet')
    cfg = get_config('mmdet::faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py').model
    cfg.backbone = R18
    cfg.neck.update(in_channels=[8, 16, 32, 64], out_channels=8)
    cfg.rpn_head.update(in_channels=8, feat_channels=8)
    cfg.roi_head.bbox_roi_extractor.out_channels = 8
    cfg.roi_head.bbox_head.update(in_channels=8, fc_out_channels=8)
    return MODELS.build(cfg)


def classifier():
    pytest.importorskip('mmpretrain')
    from mmengine.registry import init_default_scope
    from mmpretrain.registry import MODELS
    init_default_scope('mmpretrain')
    return MODELS.build(dict(
        type='ImageClassifier', backbone=R18,
        neck=dict(type='GlobalAveragePooling'),
        head=dict(type='LinearClsHead', num_classes=4, in_channels=64)))


@pytest.mark.parametrize('build', [detector, classifier])
def test_whole_models(build):
    model = build()
    x = torch.randn(1, 3, 64, 64)
    assert_twins(by_torch(model), model, lambda model: model.extract_feat(x))


@pytest.mark.long
def test_a_spawned_process(models):
    """Which imports what the pickle names; that takes its seconds."""
    net = models.build(R18)
    net.eval()
    x = torch.randn(1, 3, 64, 64)
    context = multiprocessing.get_context('spawn')
    queue = context.SimpleQueue()
    child = context.Process(target=put_sum, args=(net, x, queue))
    child.start()
    child.join(120)
    assert child.exitcode == 0
    put_sum(net, x, queue)
    assert queue.get() == queue.get()
