"""Pre-activation ResNets for small images (He et al. 2016b)."""
import copy

import pytest
import torch
from torch import nn

MODELS = pytest.importorskip('mmpretrain.registry').MODELS


def build(depth=20, **kwargs):
    net = MODELS.build(dict(
        type='StepResNetCIFAR', **{'depth': depth, 'preact': True, **kwargs}))
    for module in net.modules():  # norms away from their start
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, .5, 1.5)
            nn.init.uniform_(module.bias, -.5, .5)
    return net


def by_hand(net, x):
    """The article's Fig. 1b, and a norm and a ReLU at the end."""
    x = net.conv1(x)
    outs = []
    for block in (block for stage in net._stages() for block in stage):
        if block is net.layer3[0]:
            outs.append(x)
        y = block.norm1(x).relu()
        identity = x if block.downsample is None else block.downsample(y)
        y = block.conv1(y)
        for i in range(2, block.num_convs + 1):
            y = getattr(block, f'norm{i}')(y).relu()
            y = getattr(block, f'conv{i}')(y)
        x = identity + y
    return *outs, net.end_norm(x).relu()


@pytest.mark.core
@pytest.mark.parametrize('depth, block, step', [
    (20, 'bottleneck', dict(type='StepAdaptor', init_step=1)),
    (14, 'basic', None)])
def test_it_is_the_plain_network(depth, block, step):
    net = build(depth, block=block, step=step, step_blocks='all',
                out_indices=(1, 2)).double()
    assert not any(isinstance(module, nn.BatchNorm2d) for stage in (
        net.layer1, net.layer2) for module in stage[0].downsample or ())
    twin = copy.deepcopy(net)
    x = torch.randn(2, 3, 16, 16).double()
    for mode in (True, False):
        net.train(mode), twin.train(mode)
        ours, theirs = net(x), by_hand(twin, x)
        torch.testing.assert_close(ours, theirs)
        for outs in (ours, theirs):
            sum(out.square().sum() for out in outs).backward()
    for (name, p), q in zip(net.named_parameters(), twin.parameters()):
        if 'step' not in name:
            torch.testing.assert_close(p.grad, q.grad)
    for (name, p), q in zip(net.named_buffers(), twin.buffers()):
        if 'step' not in name:
            torch.testing.assert_close(p, q)


@pytest.mark.core
def test_frozen_stages():
    net = build(frozen_stages=2, step=dict(type='StepAdaptor', init_step=1))
    net.train()
    free = {name.partition('.')[0] for name, p in net.named_parameters()
            if p.requires_grad}
    assert free == {'layer3', 'end_norm'}
    assert not net.layer2[1].bn1.training and net.end_norm.training
    net = build(frozen_stages=3, step=None)
    net.train()
    assert not any(p.requires_grad for p in net.parameters())
    assert not net.end_norm.training
