"""Records the attention maps of a network's self-attention layers."""
import re
from functools import partial

import numpy as np
import torch

from ..attention import (
    AttentionRecord,
    LayerAttention,
    RelativeSelfAttention2d,
    mean_attention_distance,
    uniform_attention_distance,
)
from ..utils.hook_helpers import unwrap

#: Larger pictures are kept at a fraction of their size.
EDGE = 256


def find_attention_layers(model, pattern: str | None = None) -> dict:
    """The relative self-attention layers of a model.

    Args:
        model (nn.Module): possibly inside a wrapper.
        pattern (str, optional): a regular expression for their names.

    Returns:
        dict[str, RelativeSelfAttention2d]: by name.

    Raises:
        ValueError: if there is none.
    """
    layers = {name: module for name, module in unwrap(model).named_modules()
              if isinstance(module, RelativeSelfAttention2d)}
    found = {name: module for name, module in layers.items()
             if re.fullmatch(pattern or '.*', name)}
    if not found:
        raise ValueError(
            f'layers: expected names of layers, got none that {pattern!r} '
            f'matches in {type(unwrap(model)).__name__} with '
            f'{[*layers] or "no RelativeSelfAttention2d"}')
    return found


@torch.no_grad()
def record_attention(model, images, run, query=None,
                     pattern: str | None = None, **more) -> AttentionRecord:
    """Run a model and record the attention of its layers.

    Args:
        model (nn.Module): in eval mode.
        images (Tensor): (N, 3, H, W), as the network takes them. Maps are
            of the first image, distances are means over all.
        run (callable): without arguments; runs the network on them.
        query (tuple[int, int], optional): row and column of a pixel of the
            image. Left out, its middle.
        pattern (str, optional): as in :func:`find_attention_layers`.
        more: fields of the record: ``iteration``, ``name``.

    Raises:
        ValueError: without such layers, if one did not run, or if the image
            has no such pixel or a layer no output there.
    """
    layers = find_attention_layers(model, pattern)
    size = tuple(images.shape[2:])
    query = check_query(query, size)
    found: dict[str, LayerAttention] = {}

    def read(name, layer, args, kwargs):
        # Of a layer that runs several times the first counts.
        if name not in found:
            x = [*args, *kwargs.values()][0]
            found[name] = _of_layer(name, layer, x, query, size)

    handles = [
        layer.register_forward_pre_hook(partial(read, name), with_kwargs=True)
        for name, layer in layers.items()]
    try:
        run()
    finally:
        for handle in handles:
            handle.remove()
    absent = set(layers) - set(found)
    if absent:
        raise ValueError(
            'layers: expected layers of one backbone that is not compiled, '
            f'got {sorted(absent)}, which did not run; choose layers by a '
            'regular expression, layers=... or --layers')
    return AttentionRecord([*found.values()], as_picture(model, images[0]),
                           size, query, len(images), **more)


def check_query(query, size: tuple) -> tuple:
    """Row and column of a pixel of an image; its middle for None.

    Raises:
        ValueError: if the image has none there.
    """
    if query is None:
        return tuple(edge // 2 for edge in size)
    if not isinstance(query, (tuple, list)) or len(query) != 2 or not all(
            type(i) is int and 0 <= i < edge for i, edge in zip(query, size)):
        raise ValueError('query: expected row and column of a pixel of the '
                         f'image of {size} px, got {query!r}')
    return tuple(query)


def _of_layer(name: str, layer, x, query: tuple,
              size: tuple) -> LayerAttention:
    shape = x.shape[2:]
    pixel = tuple(edge / own for edge, own in zip(size, shape))
    inside = [q * own // edge for q, edge, own in zip(query, size, shape)]
    distance = mean_attention_distance(layer, x, pixel)
    maps = layer.attention(x[:1], _output_pixel(name, layer, inside, shape))
    return LayerAttention(
        name=name, maps=maps[0].float().cpu().numpy(),
        query=tuple(i + p for i, p in zip(inside, layer.padding)),
        distance=distance.tolist(),
        uniform=uniform_attention_distance(layer, x, pixel),
        pixel=pixel, padding=layer.padding)


def _output_pixel(name: str, layer, inside: list, shape) -> list:
    """A pixel of a layer's input, in its output."""
    lost = [c - p for c, p in zip(layer.crop, layer.padding)]
    if not all(n <= i < edge - n for i, n, edge in zip(inside, lost, shape)):
        raise ValueError(
            f'query: expected a pixel at least {tuple(lost)} px from the '
            f'edges of the {tuple(shape)} px map in {name}, got '
            f'{tuple(inside)}, where it has no output')
    return [i - n for i, n in zip(inside, lost)]


def as_picture(model, image) -> np.ndarray:
    """(C, H, W), normalised -> (H, W, 3), uint8, sides of at most 256 px.

    Undoes the model's own data preprocessor; without one, the range of
    values becomes that of a picture.
    """
    own = getattr(unwrap(model), 'data_preprocessor', None)
    mean, std = getattr(own, 'mean', None), getattr(own, 'std', None)
    image = image.detach().float()
    if isinstance(mean, torch.Tensor) and isinstance(std, torch.Tensor):
        image = image * std.to(image) + mean.to(image)
    else:
        low, high = image.aminmax()
        image = (image - low) * (255 / (high - low).clamp_min(1e-12))
    stride = -(-max(image.shape[1:]) // EDGE)
    image = image[:, ::stride, ::stride].clamp(0, 255).round()
    if len(image) != 3:
        image = image.mean(0, keepdim=True).expand(3, -1, -1)
    return image.byte().permute(1, 2, 0).cpu().numpy()
