"""Layers without the call of a module."""
import copy

import pytest
import torch
from torch import nn

from stepnet_mm.utils.direct_calls import convolve, normalize, rectify


def image(shape=(3, 4, 5, 6)):
    torch.manual_seed(0)
    return torch.randn(shape)


LAYERS = {
    'conv': lambda: nn.Conv2d(4, 6, 3, 2, 1, groups=2),
    'no_bias': lambda: nn.Conv2d(4, 6, 1, bias=False),
    'reflect': lambda: nn.Conv2d(4, 6, 3, padding=1, padding_mode='reflect'),
    'relu': nn.ReLU,
    'over': lambda: nn.ReLU(inplace=True),
    'relu6': nn.ReLU6,
    'norm': lambda: nn.BatchNorm2d(4),
    'no_affine': lambda: nn.BatchNorm2d(4, affine=False),
    'cumulative': lambda: nn.BatchNorm2d(4, momentum=None),
    'untracked': lambda: nn.BatchNorm2d(4, track_running_stats=False),
    'group_norm': lambda: nn.GroupNorm(2, 4)}


def direct(layer, x):
    return (convolve if isinstance(layer, nn.Conv2d) else
            rectify if isinstance(layer, (nn.ReLU, nn.ReLU6)) else
            normalize)(layer, x)


@pytest.mark.parametrize('training', [True, False])
@pytest.mark.parametrize('name', LAYERS)
def test_as_the_module(name, training):
    layer = LAYERS[name]().train(training)
    twin = copy.deepcopy(layer)
    for _ in range(2):
        x, y = image(), image()
        assert torch.equal(direct(layer, x), twin(y)) and torch.equal(x, y)
    for own, other in zip(layer.buffers(), twin.buffers()):
        assert torch.equal(own, other)


def patched(layer):
    layer.forward = lambda x, run=layer.forward: -run(x)


def lent(layer):
    """As FSDP keeps a parameter, no longer one of the module's."""
    weight = layer.weight.detach()
    del layer.weight
    layer.weight = 2 * weight


@pytest.mark.parametrize('name', ['conv', 'norm'])
@pytest.mark.parametrize('change', [
    patched, lent,
    lambda layer: layer.register_forward_hook(lambda *args: -args[-1]),
    lambda layer: layer.register_forward_pre_hook(
        lambda layer, args: (2 + args[0]**2, )),
    lambda layer: layer.register_full_backward_hook(
        lambda layer, found, given: (7 * found[0], )),
    lambda layer: layer.register_full_backward_pre_hook(
        lambda layer, given: (7 * given[0], ))], ids=range(6))
def test_whoever_looks_sees_the_call(name, change):
    plain, changed = (LAYERS[name]() for _ in range(2))
    changed.load_state_dict(plain.state_dict())
    change(changed)
    results = []
    for run in (plain, changed, lambda x: direct(changed, x)):
        x = image().requires_grad_()
        y = run(x)
        y.square().sum().backward()
        results.append((y.detach(), x.grad))
    assert all(map(torch.equal, *results[1:]))
    assert not all(map(torch.equal, *results[:2]))
