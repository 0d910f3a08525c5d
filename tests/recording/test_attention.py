import numpy as np
import pytest
import torch
from torch import nn

from stepnet_mm.attention import (
    RelativeSelfAttention2d,
    conv_to_attention,
    mean_attention_distance,
)
from stepnet_mm.recording import find_attention_layers, record_attention


class Net(nn.Module):
    """A layer on the image, then one on maps of half its size."""

    def __init__(self):
        super().__init__()
        self.first = RelativeSelfAttention2d(3, num_heads=2)
        self.pool = nn.AvgPool2d(2)
        self.second = RelativeSelfAttention2d(
            3, num_heads=4, content=True, padding=1, crop=1)

    def forward(self, x):
        return self.second(x=self.pool(self.first(x)))


def record(net, images, **kwargs):
    return record_attention(net, images, run=lambda: net(images), **kwargs)


def test_maps_and_distances_are_those_of_the_layers():
    net, images = Net(), torch.randn(3, 3, 6, 8)
    found = record(net, images, query=(5, 2), iteration=4, name='net')
    first, second = found.layers
    assert (found.size, found.samples, found.iteration) == ((6, 8), 3, 4)
    assert found.query == (5, 2)
    assert [first.name, second.name] == ['first', 'second']
    x = net.pool(net.first(images))
    np.testing.assert_allclose(
        first.maps, net.first.attention(images, (5, 2))[0])
    # Row 5 of 6 is row 2 of 3, and row 3 of the padded map.
    np.testing.assert_allclose(
        second.maps, net.second.attention(x, (2, 1))[0], rtol=1e-5)
    assert (first.query, second.query) == ((5, 2), (3, 2))
    assert second.maps.shape == (4, 5, 6)
    torch.testing.assert_close(
        torch.tensor(second.distance).double(),
        mean_attention_distance(net.second, x, (2., 2.)))
    assert not any(m._forward_pre_hooks for m in net.modules())


def test_the_middle_of_a_large_image_is_the_query():
    net = nn.Sequential(
        nn.AvgPool2d(100), RelativeSelfAttention2d(3, num_heads=1))
    found = record(net, torch.randn(1, 3, 600, 300), pattern='1')
    assert [layer.query for layer in found.layers] == [(3, 1)]
    assert found.size == (600, 300)


def test_a_query_that_a_layer_has_no_output_for():
    net = nn.Sequential(nn.AvgPool2d(2), conv_to_attention(nn.Conv2d(3, 3, 3)))
    images = torch.randn(1, 3, 12, 12)
    assert record(net, images, query=(2, 9)).layers[0].query == (1, 4)
    for query in ((6, 0), (0, -1)):
        with pytest.raises(ValueError, match=r'query: .*\(6, 8\).*got'):
            record(Net(), images[..., :6, :8], query=query)
    for query in ((1, 5), (5, 10)):
        with pytest.raises(ValueError, match=r'\(6, 6\) px map in 1, got'):
            record(net, images, query=query)


def test_layers_that_are_not_found():
    for net, pattern in ((nn.Conv2d(3, 3, 1), None), (Net(), 'x.*')):
        with pytest.raises(ValueError, match='layers: expected names'):
            find_attention_layers(net, pattern)
    net, images = Net(), torch.randn(1, 3, 6, 8)
    with pytest.raises(ValueError, match="'second'., which did not run"):
        record_attention(net, images, run=lambda: net.first(images))
