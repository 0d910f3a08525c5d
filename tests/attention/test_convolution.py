import pytest
import torch
from torch import nn

from stepnet_mm.attention import conv_to_attention

CONVOLUTIONS = dict(
    plain=dict(kernel_size=3, padding=1),
    pointwise=dict(kernel_size=1, bias=False),
    oblong=dict(kernel_size=(3, 5), dilation=(3, 2), padding='same'),
    grouped=dict(kernel_size=(5, 3), groups=2, padding='valid'),
    wide_border=dict(kernel_size=3, groups=4, padding=(4, 2), bias=False),
    **{mode: dict(kernel_size=(1, 5), padding=(0, 2), padding_mode=mode)
       for mode in ('reflect', 'replicate', 'circular')})


@pytest.mark.core
@pytest.mark.parametrize('name', CONVOLUTIONS)
def test_the_same_output_border_included(name):
    conv = nn.Conv2d(8, 12, **CONVOLUTIONS[name]).double()
    x = torch.randn(2, 8, 9, 11, dtype=torch.float64)
    torch.testing.assert_close(
        conv_to_attention(conv)(x), conv(x), atol=1e-12, rtol=1e-12)


def test_the_nearest_other_pixel_weighs_as_the_precision_says():
    layer = conv_to_attention(nn.Conv2d(3, 2, 3, padding=1), precision=4)
    maps = layer.attention(torch.randn(1, 3, 5, 5), (2, 2))[0]
    # The middle head, at the same pixel of the padded map.
    torch.testing.assert_close(maps[4, 3, 4] / maps[4, 3, 3],
                               torch.tensor(-4.).exp())


def test_nine_heads_of_full_width_which_can_be_trained():
    conv = nn.Conv2d(3, 2, 3, padding=1)
    gradients = []
    for precision in (64, 2):
        layer = conv_to_attention(conv, precision)
        assert (layer.num_heads, layer.head_dim) == (9, 3)
        layer(torch.randn(1, 3, 5, 5)).square().sum().backward()
        assert layer.output.weight.grad.abs().max() > .01
        gradients.append(layer.positions.centers.grad.abs().max())
    assert gradients[0] < 1e-15 and gradients[1] > .01


@pytest.mark.parametrize('conv, error, key', [
    (nn.Conv2d(2, 2, (3, 4)), ValueError, 'kernel_size'),
    (nn.Conv2d(2, 2, 3, stride=(1, 2)), ValueError, 'stride=1'),
    (nn.Linear(2, 2), TypeError, 'Linear')])
def test_convolutions_without_such_a_layer(conv, error, key):
    with pytest.raises(error, match=key):
        conv_to_attention(conv)
