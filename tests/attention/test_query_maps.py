import itertools

import numpy as np
import pytest
import torch
from torch import nn

from stepnet_mm.attention import RelativeSelfAttention2d
from stepnet_mm.attention.query_maps import measure_query_maps

EVERYTHING = 2**30


def build(**kwargs):
    torch.manual_seed(0)
    layer = RelativeSelfAttention2d(4, num_heads=3, **kwargs)
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=.5)
    return layer


def attention(found):
    return found.levels / 255 * found.largest[..., None, None]


@pytest.mark.parametrize('kwargs', [
    dict(padding=(2, 1), crop=(1, 0)),
    dict(encoding='absolute', content=True, max_size=8)])
def test_every_query_within_half_a_level(kwargs):
    layer, x = build(**kwargs), torch.randn(1, 4, 4, 6)
    found = measure_query_maps(layer, x, EVERYTHING)
    height, width = layer(x).shape[2:]
    assert found.levels.dtype == np.uint8
    assert found.levels.shape[:3] == (3, height, width)
    np.testing.assert_array_equal(
        found.rows, np.arange(height) + layer.crop[0])
    np.testing.assert_array_equal(
        found.columns, np.arange(width) + layer.crop[1])
    for i, j in itertools.product(range(height), range(width)):
        want = layer.attention(x, (i, j))[0].numpy()
        np.testing.assert_allclose(
            found.largest[:, i, j], want.max((1, 2)), rtol=1e-5)
        error = abs(attention(found)[:, i, j] - want).max((1, 2))
        assert (error <= .501 / 255 * want.max((1, 2))).all()


@pytest.mark.parametrize('limit, rows, columns', [
    (3 * 40 * 40 - 1, [0, 2, 4], [0, 2, 4, 6]),
    (1, [0], [0])])
def test_fewer_queries_above_a_limit(limit, rows, columns):
    layer, x = build(content=True), torch.randn(1, 4, 5, 8)
    found = measure_query_maps(layer, x, limit)
    assert (found.rows.tolist(), found.columns.tolist()) == (rows, columns)
    assert found.levels.shape == (3, len(rows), len(columns), 5, 8)
    every = measure_query_maps(layer, x, EVERYTHING)
    np.testing.assert_array_equal(
        found.levels, every.levels[:, rows][:, :, columns])
