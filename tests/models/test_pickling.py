"""Whole models pickle, copy and go to another process."""
import copy
import io
import multiprocessing
import pickle

import pytest
import torch
from equality import BOTH, put_sum

SMALL = dict(base_channels=8, stem_channels=8)


def by_pickle(model):
    return pickle.loads(pickle.dumps(model))


def by_torch(model):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def assert_twins(ours, theirs, size):
    assert type(ours) is type(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.eval(), theirs.eval()
    x = torch.randn(1, 3, size, size)
    with torch.no_grad():
        for a, b in zip(ours(x), theirs(x)):
            assert torch.equal(a, b)


@pytest.mark.core
@BOTH
@pytest.mark.parametrize('way, kind, depth', [
    (by_pickle, 'StepResNet', 18), (by_torch, 'StepResNet', 50),
    (copy.deepcopy, 'StepResNeXt', 50)])
def test_backbones(models, way, kind, depth):
    net = models.build(dict(type=kind, depth=depth, **SMALL))
    assert_twins(way(net), net, 64)


@pytest.mark.parametrize('way', [by_pickle, copy.deepcopy])
@pytest.mark.parametrize('cfg', [
    dict(type='StepResNetCIFAR', depth=20),
    dict(type='StepResNetCIFAR', depth=14, block='basic', preact=True),
    dict(type='StepVisionTransformer', img_size=32, arch=dict(
        embed_dims=32, num_layers=2, num_heads=4, feedforward_channels=48))])
def test_mmpretrains_alone(models, cfg, way):
    net = models.build(cfg)
    assert_twins(way(net), net, 32)


@pytest.mark.long
def test_a_spawned_process(models):
    """Which imports what the pickle names; that takes its seconds."""
    net = models.build(dict(type='StepResNet', depth=18, **SMALL))
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
