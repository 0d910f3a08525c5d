import math

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from stepnet_mm.attention import RelativeSelfAttention2d

FORMS = [dict(encoding=encoding, content=content)
         for encoding in ('quadratic', 'learned', None)
         for content in (True, False) if encoding or content]
ABSOLUTE = dict(encoding='absolute', content=True)
FORMS.append(ABSOLUTE)
SIZED = ('learned', 'absolute')


def build(encoding='quadratic', **kwargs):
    layer = RelativeSelfAttention2d(
        4, num_heads=3, encoding=encoding,
        max_size=12 if encoding in SIZED else None, **kwargs).double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=.5)
    return layer


def image(*shape):
    return torch.randn(*(shape or (2, 4, 5, 6)), dtype=torch.float64)


def by_definition(layer, x):
    """The score's four terms, a T x T table for each head."""
    n, _, height, width = x.shape
    heads, d = layer.num_heads, layer.head_dim
    pixels = [(i, j) for i in range(height) for j in range(width)]
    scores = torch.zeros(n, heads, len(pixels), len(pixels), dtype=x.dtype)
    if layer.content:
        placed = x  # X, or X + P
        if layer.absolute is not None:
            placed = x + layer.absolute.table[:, :height, :width]
        q, k = [m(placed).view(n, heads, d, -1)
                for m in (layer.query, layer.key)]
        scores += torch.einsum('nhdq,nhdk->nhqk', q, k) / math.sqrt(d)
    if layer.content and layer.absolute is None:
        u = torch.einsum('hd,nhdk->nhk', layer.key_bias, k) / math.sqrt(d)
        scores += u[:, :, None]
    if layer.positions is not None:
        r = torch.stack([torch.stack([encode(layer.positions, a, b)
                                      for b in pixels]) for a in pixels])
        scores += torch.einsum(
            'hp,qkp->hqk', layer.positions.coefficients(), r)
        if layer.content:
            scores += torch.einsum('nhdq,hdp,qkp->nhqk', q / math.sqrt(d),
                                   layer.position_key, r)
    values = x[:, None] if layer.value is None else layer.value(x)
    values = values.reshape(n, -1, d, len(pixels)).expand(-1, heads, -1, -1)
    mixed = torch.einsum('nhqk,nhdk->nhdq', scores.softmax(-1), values)
    return layer.output(mixed.reshape(n, -1, height, width)), scores


def encode(positions, query, key):
    """r_δ from its definition."""
    rows, columns = [b - a for a, b in zip(query, key)]
    if hasattr(positions, 'centers'):
        return torch.tensor([rows**2 + columns**2, rows, columns]).double()
    middle = positions.max_size - 1
    return torch.cat([positions.rows[middle + rows],
                      positions.columns[middle + columns]])


@pytest.mark.parametrize('form, head_dim', [
    *((form, 7) for form in FORMS), *((form, None) for form in FORMS[:2])])
def test_the_scores_as_they_are_defined(form, head_dim):
    layer, x = build(head_dim=head_dim, out_channels=5, **form), image()
    want, scores = by_definition(layer, x.requires_grad_())
    torch.testing.assert_close(layer(x), want)
    inputs = [x, *layer.parameters()]
    torch.testing.assert_close(*(torch.autograd.grad(
        out.square().sum(), inputs, retain_graph=True)
        for out in (layer(x), want)))
    attention = layer.attention(x, (3, 1))
    torch.testing.assert_close(
        attention, scores.softmax(-1)[:, :, 3 * 6 + 1].view(2, 3, 5, 6))


def test_the_quadratic_score_is_a_distance_to_the_centre():
    layer = build()
    centers, widths = layer.positions.centers, layer.positions.widths
    found = layer.attention(image(), (2, 2))[0]
    for h in range(3):
        distance = torch.stack([
            ((torch.tensor([i - 2., j - 2.]) - centers[h])**2).sum()
            for i in range(5) for j in range(6)])
        want = (-distance / (2 * widths[h]**2)).softmax(0).view(5, 6)
        torch.testing.assert_close(found[h], want)


@pytest.mark.parametrize('form', [FORMS[0], FORMS[2], ABSOLUTE])
def test_padding_and_crop(form):
    layer, x = build(padding=(2, 1), crop=(1, 0), **form), image(1, 4, 3, 2)
    out = layer(x)
    assert out.shape == (1, 4, 3 + 4 - 2, 2 + 2)
    want, scores = by_definition(layer, nn.functional.pad(x, (1, 1, 2, 2)))
    torch.testing.assert_close(out, want[..., 1:-1, :])
    maps = scores.softmax(-1).view(1, 3, 7, 4, 7, 4)
    torch.testing.assert_close(layer.attention(x, (4, 2)), maps[:, :, 5, 2])
    for i, row in zip((1, 4), layer.attention_by_row(x, 3), strict=True):
        torch.testing.assert_close(row, maps[:, :, i, ::3])


@pytest.mark.parametrize('form', FORMS)
def test_half_precision(form):
    layer, x = build(head_dim=8, **form), image(2, 4, 8, 8)
    want, got = layer(x), layer.bfloat16()(x.bfloat16())
    assert got.dtype == torch.bfloat16
    assert (got.double() - want).norm() < .1 * want.norm()


@pytest.mark.parametrize('content', [True, False])
def test_large_scores_in_half_precision(content):
    """Narrow heads and far shifts: scores of a million before the softmax."""
    layer = build(head_dim=4, content=content).float()
    with torch.no_grad():
        layer.positions.widths.fill_(.1)
        layer.positions.centers.copy_(
            torch.tensor([[10., -9.], [0., 0.], [-3., 6.]]))
        if content:
            layer.position_key.mul_(.1)
    x = image(1, 4, 32, 32).float()
    want = layer(x)
    with torch.autocast('cpu', torch.bfloat16):
        got = layer(x).float()
    assert (got - want).norm() < .02 * want.norm()


@pytest.mark.core
@pytest.mark.parametrize('make', [
    lambda layer, x: torch.jit.trace(layer, x, check_trace=False),
    pytest.param(
        lambda layer, x: torch.export.export(layer, (x, ),
                                             strict=False).module(),
        marks=pytest.mark.since_torch('2.5', 'torch.export without Dynamo'))])
def test_tracing_and_exporting(make):
    layer, x = build(**FORMS[0]), image()
    torch.testing.assert_close(make(layer, x)(x), layer(x))


@pytest.mark.parametrize('form', [FORMS[1], FORMS[2], ABSOLUTE])
def test_no_square_of_the_pixels_in_memory(form):
    """Nothing of T x T elements is made, T = 1600 pixels."""
    sizes = []

    class Watch(TorchDispatchMode):

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            out = function(*args, **kwargs or {})
            sizes.extend(t.numel() for t in tree_flatten(out)[0]
                         if isinstance(t, torch.Tensor))
            return out

    layer = RelativeSelfAttention2d(
        4, num_heads=2, head_dim=8,
        **dict(form, max_size=40 if form['encoding'] in SIZED else None))
    with Watch():
        layer(torch.randn(1, 4, 40, 40)).sum().backward()
    assert sizes and max(sizes) < 1600 * 1600 / 4


@pytest.mark.parametrize('kwargs, key', [
    (dict(encoding='sine'), 'encoding: '),
    (dict(encoding='absolute', max_size=8), 'content=False'),
    (dict(encoding='learned', max_size=8, encoding_dim=5), 'encoding_dim: '),
    (dict(encoding=None), 'content=False')])
def test_wrong_arguments(kwargs, key):
    with pytest.raises(ValueError, match=key):
        RelativeSelfAttention2d(4, **kwargs)


@pytest.mark.parametrize('kwargs, key', [
    (dict(crop=2), r'crop of \(2, 2\).*\(4, 9\)'),
    (dict(max_size=9, padding=1, encoding='learned'),
     r'max_size=9.*\(6, 11\)')])
def test_wrong_maps(kwargs, key):
    with pytest.raises(ValueError, match=key):
        RelativeSelfAttention2d(2, **kwargs)(torch.zeros(1, 2, 4, 9))
    with pytest.raises(IndexError):
        RelativeSelfAttention2d(2).attention(torch.zeros(1, 2, 5, 5), (5, 0))
