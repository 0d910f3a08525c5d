import copy

import pytest
import torch
from torch import nn

from stepnet_mm.attention import RelativeSelfAttention2d, conv_to_attention

CONVOLUTIONS = dict(
    plain=dict(kernel_size=3, padding=1),
    pointwise=dict(kernel_size=1, bias=False),
    oblong=dict(kernel_size=(3, 5), dilation=(3, 2), padding='same'),
    grouped=dict(kernel_size=(5, 3), groups=2, padding='valid'),
    wide_border=dict(kernel_size=3, groups=4, padding=(4, 2), bias=False),
    **{mode: dict(kernel_size=(1, 5), padding=(0, 2), padding_mode=mode)
       for mode in ('reflect', 'replicate', 'circular')})


@pytest.mark.parametrize('name', [
    pytest.param(name, marks=pytest.mark.core) if name == 'plain' else name
    for name in CONVOLUTIONS])
def test_the_same_output_border_included(name):
    conv = nn.Conv2d(8, 12, **CONVOLUTIONS[name]).double()
    x = torch.randn(2, 8, 9, 11, dtype=torch.float64)
    torch.testing.assert_close(
        conv_to_attention(conv)(x), conv(x), atol=1e-12, rtol=1e-12)


def test_in_other_precisions():
    conv = nn.Conv2d(8, 6, 3, padding=1)
    x = torch.randn(2, 8, 20, 17)
    for dtype, bound in ((torch.float32, 1e-5), (torch.bfloat16, 5e-2)):
        layer = conv_to_attention(copy.deepcopy(conv).to(dtype))
        assert layer.output.weight.dtype == dtype
        torch.testing.assert_close(
            layer(x.to(dtype)).float(), conv(x), atol=bound, rtol=bound)


def test_the_theorem_needs_nine_heads_of_full_width():
    conv = nn.Conv2d(16, 16, 3, padding=1)
    layer = conv_to_attention(conv)
    assert isinstance(layer, RelativeSelfAttention2d)
    assert (layer.num_heads, layer.head_dim) == (9, 16)
    assert not layer.content
    # The heads' centres are the kernel's positions.
    assert layer.positions.centers.tolist() == [
        [i, j] for i in (-1, 0, 1) for j in (-1, 0, 1)]
    before = conv.weight.clone()
    with torch.no_grad():
        layer.output.weight.zero_()
    assert torch.equal(conv.weight, before)


def test_less_precise_heads_can_be_trained():
    gradients = []
    for precision in (64, 2):
        layer = conv_to_attention(nn.Conv2d(3, 2, 3, padding=1), precision)
        layer(torch.randn(1, 3, 5, 5)).square().sum().backward()
        assert layer.output.weight.grad.abs().max() > .01
        gradients.append(layer.positions.centers.grad.abs().max())
    assert gradients[0] < 1e-15 and gradients[1] > .01


def test_the_nearest_other_pixel_weighs_as_the_precision_says():
    layer = conv_to_attention(nn.Conv2d(3, 2, 3, padding=1), precision=4)
    maps = layer.attention(torch.randn(1, 3, 5, 5), (2, 2))[0]
    # The middle head, at the same pixel of the padded map.
    torch.testing.assert_close(maps[4, 3, 4] / maps[4, 3, 3],
                               torch.tensor(-4.).exp())


def test_far_centres_in_half_precision():
    conv = nn.Conv2d(2, 2, 3, padding=301, dilation=301)
    x = torch.randn(1, 2, 4, 4)
    torch.testing.assert_close(
        conv_to_attention(conv.bfloat16())(x.bfloat16()).float(),
        conv.float()(x), atol=5e-2, rtol=5e-2)


@pytest.mark.parametrize('conv, error, message', [
    (nn.Conv2d(2, 2, (3, 4)), ValueError, r'kernel_size: .*\(3, 4\)'),
    (nn.Conv2d(2, 2, 3, stride=(1, 2)), ValueError, r'stride: .*\(1, 2\)'),
    (nn.ConvTranspose2d(2, 2, 3), TypeError, 'ConvTranspose2d'),
    (nn.Linear(2, 2), TypeError, 'Linear'),
])
def test_what_cannot_be_expressed(conv, error, message):
    with pytest.raises(error, match=message):
        conv_to_attention(conv)


def test_a_convolution_with_a_forward_of_its_own():

    class Normalized(nn.Conv2d):

        def forward(self, x):
            return super().forward(x / x.norm())

    class Standardized(nn.Conv2d):

        def _conv_forward(self, x, weight, bias):
            return super()._conv_forward(x, weight / weight.std(), bias)

    for kind in (Normalized, Standardized):
        with pytest.raises(TypeError, match=f'{__name__}.*{kind.__name__}'):
            conv_to_attention(kind(2, 2, 3))


def test_a_precision_of_nothing():
    with pytest.raises(ValueError, match='precision: .*got 0'):
        conv_to_attention(nn.Conv2d(2, 2, 3), precision=0)
