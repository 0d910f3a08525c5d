"""Where the heads look from every query pixel: what a page shows."""
import itertools
import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

#: Attention values of a record, a byte each; queries are left out above it.
LIMIT = 2**23


@dataclass
class QueryMaps:
    """Each head's attention of evenly spread query pixels, in 8 bits.

    The attention is ``levels / 255 * largest``, right to 0.2 % of a map's
    largest value.

    Attributes:
        levels (ndarray): (heads, queries' rows, their columns, H, W), uint8,
            padding included; 255 is a map's largest value.
        largest (ndarray): (heads, queries' rows, their columns), float32.
        rows (ndarray): rows of the queries in the padded map.
        columns (ndarray): likewise.
    """
    levels: np.ndarray
    largest: np.ndarray
    rows: np.ndarray
    columns: np.ndarray


@torch.no_grad()
def measure_query_maps(layer, x: Tensor, limit: int) -> QueryMaps:
    """Where a layer's heads look from every query pixel of an image.

    Args:
        layer (RelativeSelfAttention2d): the layer.
        x (Tensor): its input, (1, C, H, W).
        limit (int): how many values are kept at most. Above it only every
            k-th row and column of the output are queries, with the smallest
            k that keeps to it; one query is always kept.
    """
    padded = [size + 2 * p for size, p in zip(x.shape[2:], layer.padding)]
    queries = [np.arange(crop, size - crop)
               for crop, size in zip(layer.crop, padded)]
    stride = least_stride([*map(len, queries)],
                          limit // (layer.num_heads * math.prod(padded)))
    rows = [_quantised(row[0]) for row in layer.attention_by_row(x, stride)]
    levels, largest = [np.stack(arrays, 1) for arrays in zip(*rows)]
    return QueryMaps(levels, largest, *(at[::stride] for at in queries))


def least_stride(sizes: list[int], most: int) -> int:
    """The least k so that every k-th row and column are ``most`` pixels."""
    return next(
        k for k in itertools.count(1)
        if math.prod(-(-size // k) for size in sizes) <= max(1, most))


def _quantised(maps: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """(..., H, W) -> levels of the largest value, and that value, (...)."""
    largest = maps.float().amax((-2, -1), keepdim=True)
    levels = (maps / largest * 255).round().byte()
    return levels.cpu().numpy(), largest[..., 0, 0].cpu().numpy()
