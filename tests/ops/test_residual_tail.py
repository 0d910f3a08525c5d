import copy
import itertools
from types import SimpleNamespace

import pytest
import torch

from stepnet_mm.ops import (
    ResidualTail,
    attach_mean,
    residual_tail,
    take_attached_mean,
)
from stepnet_mm.utils.precision import float32_or_wider


def inputs(dtype=torch.float64, shape=(2, 3, 3, 4)):
    torch.manual_seed(0)
    z, x = torch.randn(2, *shape, dtype=dtype)
    weight = torch.randn(shape[1], 1, 1, dtype=float32_or_wider(dtype))
    return [t.requires_grad_() for t in (z, x, weight)]


def tables(tail, weight):
    """A scale and a shift that depend on all moments there are."""
    pooled = tail.mean * weight
    if tail.variance is not None:
        pooled = pooled / (tail.variance + .1).sqrt()
    if tail.identity_mean is not None:
        pooled = pooled + tail.identity_mean.square()
    return pooled.sigmoid() * weight, pooled.tanh() + weight


def fused(z, x, weight, variance=True, pool_identity=True):
    tail = ResidualTail(z, x, variance, pool_identity)
    return tail.output(*tables(tail, weight))


class Plain:
    """What ResidualTail computes, with torch's own derivatives."""

    def __init__(self, z, x):
        self.z, self.x = z, x
        wide = z.to(float32_or_wider(z.dtype))
        self.mean = wide.mean((2, 3), keepdim=True)
        self.variance = wide.var((2, 3), correction=0, keepdim=True)
        self.identity_mean = x.to(wide.dtype).mean((2, 3), keepdim=True)

    def output(self, scale, shift):
        return (self.x + scale * self.z + shift).relu().to(self.z.dtype)


def plain(z, x, weight):
    tail = Plain(z, x)
    return tail.output(*tables(tail, weight))


def gradients(function, given):
    out = function(*given)
    torch.manual_seed(1)
    return (out, *torch.autograd.grad(
        out, [t for t in given if t.requires_grad],
        torch.randn(out.shape).to(out.dtype)))


@pytest.mark.parametrize('choice', itertools.product([True, False], repeat=2))
def test_derivatives(choice):
    def function(*given):
        return fused(*given, *choice)

    assert torch.autograd.gradcheck(function, inputs())
    assert torch.autograd.gradgradcheck(
        function, inputs(shape=(2, 2, 2, 2)), fast_mode=True)


@pytest.mark.parametrize('dtype, bound', [(torch.float64, 1e-14),
                                          (torch.float32, 2e-6),
                                          (torch.bfloat16, 4e-2)])
def test_as_plain_torch(dtype, bound):
    """Error relative to the norm: rounding moves the ReLU's edge too."""
    given = inputs(dtype, (4, 6, 17, 15))
    for got, want in zip(gradients(fused, given), gradients(plain, given)):
        assert got.dtype == want.dtype
        error = (got.double() - want.double()).norm() / want.double().norm()
        assert error < bound


@pytest.mark.parametrize('needed', [(1, 0, 0), (0, 1, 0), (0, 0, 1)])
def test_gradients_of_some_inputs_alone(needed):
    given = inputs()
    for tensor, need in zip(given, needed):
        tensor.requires_grad_(bool(need))
    for got, want in zip(gradients(fused, given), gradients(plain, given)):
        torch.testing.assert_close(got, want)


def test_a_loss_on_the_tables_alone():
    results = []
    for make in (lambda z, x: ResidualTail(z, x, True, True), Plain):
        given = inputs()
        tail = make(*given[:2])
        scale, shift = tables(tail, given[2])
        results.append(torch.autograd.grad(
            scale.square().sum() + shift.sum(), given))
    for got, want in zip(*results):
        torch.testing.assert_close(got, want)


def test_backward_twice_leaves_inputs_and_outer_gradients_alone():
    given = inputs()
    out = fused(*given)
    grad = torch.randn_like(out)
    copies = [t.detach().clone() for t in (*given, grad)]
    first = torch.autograd.grad(out, given, grad, retain_graph=True)
    second = torch.autograd.grad(out, given, grad)
    assert all(map(torch.equal, first, second))
    assert all(map(torch.equal, (*given, grad), copies))
    # No view of a Function, which nobody could change in place.
    fused(*given).mul_(2)


@pytest.mark.core
def test_no_map_is_kept_but_z_and_y():
    z, x, weight = inputs(torch.float32, (4, 8, 20, 20))
    kept = {}

    def pack(t):
        if t.numel() >= z.numel():
            kept[t.untyped_storage().data_ptr()] = t
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = fused(z, x, weight)
    assert set(kept) == {z.data_ptr(), y.data_ptr()}


@pytest.mark.core
@pytest.mark.parametrize('mode', [torch.no_grad, torch.inference_mode])
def test_without_gradients(mode):
    given = inputs()
    with mode():
        torch.testing.assert_close(fused(*given), plain(*given))


def test_a_mean_that_was_attached_is_not_taken_again():
    z, x, _ = inputs()
    attach_mean(x)
    state, mean = x.attached_mean
    torch.testing.assert_close(mean, x.mean((2, 3), keepdim=True).detach())
    x.attached_mean = state, torch.full_like(mean, 7)
    assert (ResidualTail(z, x, True, True).identity_mean == 7).all()
    # Once: nothing is left on a tensor that others may keep.
    assert not vars(x) and take_attached_mean(x) is None
    given = inputs()
    attach_mean(given[1])
    assert all(map(
        torch.equal, gradients(fused, given), gradients(fused, inputs())))


def test_a_map_that_has_changed_lost_its_mean():
    x = torch.rand(2, 3, 4, 4)
    attach_mean(x)
    copied = copy.deepcopy(x)  # its version starts again
    copied.add_(1)
    assert take_attached_mean(copied) is None
    x.add_(1)
    assert take_attached_mean(x) is None
    with torch.inference_mode():  # nobody could tell
        x = torch.rand(2, 3, 4, 4)
        attach_mean(x)
        assert take_attached_mean(x) is None
    x = torch.rand(2, 3, 4, 4).to(memory_format=torch.channels_last)
    attach_mean(x)  # no kernels
    assert take_attached_mean(x) is None


def test_a_gradient_without_strides():
    """As a mean over space gives it to the last block."""
    results = [gradients(lambda *g, f=f: f(*g).mean((2, 3)), inputs())
               for f in (fused, plain)]
    for got, want in zip(*results):
        torch.testing.assert_close(got, want)


def test_maps_that_do_not_fit():
    z, x, _ = inputs(torch.float32, (2, 4, 3, 3))
    z, x = z.detach(), x.detach()
    last = torch.channels_last
    assert ResidualTail.supports(z, x)
    assert not ResidualTail.supports(z, x[:, :, :1])
    assert not ResidualTail.supports(z, x.double())
    assert not ResidualTail.supports(z, x.to(memory_format=last))
    assert not ResidualTail.supports(
        z.to(memory_format=last), x.to(memory_format=last))
    assert not ResidualTail.supports(z[:0], x[:0])


@pytest.mark.core
@pytest.mark.parametrize('elements, used', [(2**25 - 1, 0), (2**25, 1)])
def test_small_maps_of_a_gpu_are_left_to_the_modules(
        monkeypatch, elements, used):
    asked = []
    monkeypatch.setattr(residual_tail, 'usable_kernels',
                        lambda *kind: asked.append(kind))
    z = SimpleNamespace(device=torch.device('cuda'), dtype=torch.bfloat16,
                        numel=lambda: elements,
                        is_contiguous=lambda **_: True)
    assert residual_tail._kernels_for(z) is None
    assert len(asked) == used


def test_not_under_torch_func_or_a_trace():
    seen = []

    def look(z):
        seen.append(ResidualTail.supports(z, z))
        attach_mean(z)
        assert take_attached_mean(z) is None
        return z * 2

    z = torch.randn(2, 4, 3, 3)
    torch.func.vmap(look)(z[None])
    torch.jit.trace(look, z, check_trace=False)
    assert seen == [False, False]
