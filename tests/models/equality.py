"""Helpers that compare a step backbone with its stock network."""
from contextlib import contextmanager
from unittest import mock

import pytest
import torch

BOTH = pytest.mark.parametrize(
    'models', ['mmdet', 'mmpretrain'], indirect=True)


#: One bottleneck stage of two blocks; then one, two and one modules of 2, 3
#: and 4 branches with two basic blocks each.
HRNET = {f'stage{n}': dict(
    num_modules=modules, num_branches=n, num_blocks=(2, ) * n,
    block='BASIC' if n > 1 else 'BOTTLENECK',
    num_channels=(8, 16, 32, 64)[:n])
    for n, modules in ((1, 1), (2, 1), (3, 2), (4, 1))}


def registry(library):
    """That of a library's models; skips where it is absent."""
    return pytest.importorskip(f'{library}.registry').MODELS


def assert_bound(models, type='ResNet', size=48, **kwargs):
    """A step backbone without step, or with one of 1, is the stock one."""
    stock = models.build(dict(type=type, **kwargs))
    cfg = dict(type=f'Step{type}', **kwargs)
    assert_stock(stock, models.build(dict(cfg, step=None)), size)
    assert_kept(stock, models.build(dict(
        cfg, step=dict(type='StepAdaptor', init_step=1))), size)


def assert_stock(stock, net, size=48):
    """Equal keys, outputs and gradients, bit for bit, in training mode."""
    assert list(stock.state_dict()) == list(net.state_dict())
    net.load_state_dict(stock.state_dict())
    stock.train(), net.train()
    x = torch.randn(2, 3, size, size)
    inputs = [x.clone().requires_grad_() for _ in range(2)]
    results = []
    for m, x in zip((stock, net), inputs):
        torch.manual_seed(1)
        results.append(m(x))
        sum(o.square().sum() for o in results[-1]).backward()
    assert all(torch.equal(a, b) for a, b in zip(*results))
    assert torch.equal(inputs[0].grad, inputs[1].grad)
    for (name, p), q in zip(stock.named_parameters(), net.parameters()):
        assert p.requires_grad == q.requires_grad, name
        assert (p.grad is None) == (q.grad is None), name
        assert p.grad is None or torch.equal(p.grad, q.grad), name
    for (name, p), q in zip(stock.named_buffers(), net.buffers()):
        assert torch.equal(p, q), name


def assert_kept(stock, net, size=48):
    """Equal outputs at every level in evaluation, given the same weights."""
    net.load_state_dict(stock.state_dict(), strict=False)
    stock.eval(), net.eval()
    x = torch.randn(2, 3, size, size)
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            torch.testing.assert_close(stock(x), net(x), atol=0, rtol=0)


@contextmanager
def undrawn():
    """Builds without drawing weights, most of a large network's time.

    The device 'meta' would do, but mmpretrain reads numbers off tensors.
    """

    def keep(tensor, *args, **kwargs):
        return tensor

    with mock.patch.multiple(torch.Tensor, normal_=keep, uniform_=keep):
        yield
