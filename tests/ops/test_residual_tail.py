import gc
import itertools
import weakref
from types import SimpleNamespace

import pytest
import torch

from stepnet_mm.ops import Norm, ResidualTail, residual_tail, tail_cpu


def inputs():
    """z, x, the norm's weight and bias, and a weight of the step."""
    torch.manual_seed(0)
    maps = torch.randn(2, 2, 3, 3, 4, dtype=torch.float64)
    rows = torch.randn(3, 3, dtype=torch.float64)
    return [t.requires_grad_() for t in (*maps.unbind(), *rows.unbind())]


def step_size(m, weight, every):
    """A Δt of the moments there are; not all if one is pooled for it."""
    weight = weight[:, None, None]
    pooled = m.mean_f * weight
    if m.identity_mean is not None:
        pooled = pooled + m.identity_mean.square()
    if every:
        pooled = pooled + m.mean * m.scale - m.shift.exp()
        if m.variance is not None:
            pooled = pooled / (m.variance + .1).sqrt()
    return pooled.sigmoid() * weight


def norm_of(weight, bias, running):
    frozen = torch.arange(1., 1 + len(weight)).to(weight), weight.detach() ** 2
    return Norm(weight, bias, 1e-3, frozen if running else None)


def fused(z, x, weight, bias, factor, every=True, pool_identity=True,
          running=False):
    tail = ResidualTail(norm_of(weight, bias, running), z, x, pool_identity)
    return tail.output(step_size(tail.moments, factor, every))


def plain(z, x, weight, bias, factor, every=True, pool_identity=True,
          running=False):
    """The same by torch's own BatchNorm and derivatives."""
    norm = norm_of(weight, bias, running)
    f = torch.nn.functional.batch_norm(
        z, *(norm.running or (None, None)), weight, bias, not running, 0.,
        norm.eps)
    centre, square = [v.view(1, -1, 1, 1) for v in norm.running or (
        z.mean((0, 2, 3)), z.var((0, 2, 3), correction=0))]
    scale = weight.view(1, -1, 1, 1) * (square + norm.eps).rsqrt()
    m = SimpleNamespace(
        mean=z.mean((2, 3), keepdim=True), scale=scale,
        shift=bias.view(1, -1, 1, 1) - centre * scale,
        mean_f=f.mean((2, 3), keepdim=True), variance=None if running else (
            z.var((2, 3), correction=0, keepdim=True)),
        identity_mean=x.mean((2, 3), keepdim=True) if pool_identity else None)
    return (x + f * step_size(m, factor, every)).relu()


@pytest.mark.parametrize(
    'choice', [*itertools.product([True, False], repeat=3)])
def test_derivatives(choice):
    """The first ones, and those of these, are of torch's own BatchNorm."""
    results = []
    for function in (fused, plain):
        given = inputs()
        out = function(*given, *choice)
        first = torch.autograd.grad(
            out.square().sum(), given, create_graph=True, retain_graph=True)
        loss = sum(g.square().sum() for g in first) + out.sin().sum()
        results.append([out, *first, *torch.autograd.grad(loss, given)])
        given = inputs()
        loss = function(*given, *choice).square().sum()
        results[-1] += torch.autograd.grad(loss, given)
    torch.testing.assert_close(*results)


@pytest.mark.parametrize('needed', range(5))
def test_the_gradient_of_one_input_alone(needed):
    given = [t.requires_grad_(i == needed) for i, t in enumerate(inputs())]
    torch.testing.assert_close(*(
        torch.autograd.grad(function(*given).sin().sum(), given[needed])
        for function in (fused, plain)))


def test_a_loss_on_the_moments_alone():
    z, x, weight, bias, _ = inputs()
    tail = ResidualTail(norm_of(weight, bias, False), z, x, True)
    f = torch.nn.functional.batch_norm(
        z, None, None, weight, bias, True, 0., 1e-3)
    torch.testing.assert_close(*(
        torch.autograd.grad(mean.square().sum(), (z, weight, bias))
        for mean in (tail.moments.mean_f, f.mean((2, 3)))))


def test_nothing_is_left_of_a_graph_without_the_garbage_collector():
    given = inputs()
    tail = ResidualTail(norm_of(*given[2:4], False), *given[:2], True)
    step = step_size(tail.moments, given[4], True)
    loss = tail.output(step).sum()
    seen = weakref.ref(step)
    gc.disable()
    try:
        torch.autograd.grad(loss, given)
        del tail, step, loss
        assert seen() is None
    finally:
        gc.enable()


@pytest.mark.core
def test_no_map_is_kept_but_z_and_y():
    z, *others = inputs()
    kept = {}

    def pack(t):
        if t.numel() >= z.numel():
            kept[t.untyped_storage().data_ptr()] = t
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = fused(z, *others)
    assert set(kept) == {z.data_ptr(), y.data_ptr()}


@pytest.mark.core
@pytest.mark.parametrize('mode', [torch.no_grad, torch.inference_mode])
def test_without_gradients(mode):
    given = inputs()
    with mode():
        torch.testing.assert_close(fused(*given), plain(*given))


@pytest.mark.parametrize('change', [
    lambda x: x[:, :, :1], lambda x: x[:, :, :, ::2], lambda x: x.double(),
    lambda x: x.to(memory_format=torch.channels_last)])
def test_maps_that_do_not_fit(change):
    z = torch.randn(2, 4, 3, 3)
    assert ResidualTail.supports(z, z.clone())
    assert not ResidualTail.supports(z, change(z))
    assert not ResidualTail.supports(z[:0], z[:0])
    last = z.to(memory_format=torch.channels_last)
    assert not ResidualTail.supports(last, last)


@pytest.mark.core
@pytest.mark.parametrize('device, least', [('cpu', 8), ('cuda', 2**25)])
def test_small_maps_are_left_to_the_modules(monkeypatch, device, least):
    monkeypatch.setitem(residual_tail.MIN_NUMEL, 'cpu', 8)
    monkeypatch.setattr(residual_tail, 'usable_kernels', lambda *kind: kind)

    def fused(elements):
        z = SimpleNamespace(device=torch.device(device), dtype=torch.float32,
                            numel=lambda: elements,
                            is_contiguous=lambda **_: True)
        return residual_tail._kernels_for(z) is not None

    assert [n for n in range(least - 1, least + 2) if fused(n)] == [
        least, least + 1]


def test_not_under_torch_func_or_a_trace():
    seen = []

    def look(z):
        seen.append(ResidualTail.supports(z, z))
        return z * 2

    z = torch.randn(2, 4, 3, 3)
    torch.func.vmap(look)(z[None])
    torch.jit.trace(look, z, check_trace=False)
    assert seen == [False, False]


@pytest.mark.parametrize('offset', [0, 10, 1e3, 1e5])
def test_a_large_mean_costs_the_variance_nothing(offset):
    """Nor does a flat sample: SRM reads each sample's variance."""
    z = torch.randn(4, 8, 20, 20) + offset
    if not offset:
        z[2, 3] = z[2, 3] * 1e-3 + 5
    _, var = tail_cpu.moments(z, True)
    exact = z.double().var((2, 3), correction=0, keepdim=True)
    torch.testing.assert_close(var.double(), exact, rtol=1e-5, atol=0)
    constant = torch.full((2, 3, 5, 5), float(offset) + .7)
    assert (tail_cpu.moments(constant, True)[1] <= 1e-12).all()
