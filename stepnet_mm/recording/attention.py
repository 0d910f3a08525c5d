"""Records the attention maps of a network's self-attention layers."""
import re
from functools import partial

import torch

from ..attention import (
    AttentionRecord,
    LayerAttention,
    RelativeSelfAttention2d,
    mean_attention_distance,
    uniform_attention_distance,
)
from ..utils.hook_helpers import unwrap
from .probe import restored_state, run_backbone


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
def record_attention(model, images, query=None, pattern: str | None = None,
                     run=None, **more) -> AttentionRecord:
    """Run a model in eval mode and record the attention of its layers.

    Args:
        model (nn.Module): of the mm libraries; it is left as before.
        images (Tensor): (N, 3, H, W), as the network takes them. Maps are
            of the first image, distances are means over all.
        query (tuple[int, int], optional): row and column of a pixel of the
            image. Left out, its middle.
        pattern (str, optional): as in :func:`find_attention_layers`.
        run (callable, optional): runs another model on the images.
        more: fields of the record: ``iteration``, ``name``.

    Raises:
        ValueError: without such layers, if one did not run, or if the image
            has no such pixel or a layer no output there.
    """
    layers = find_attention_layers(model, pattern)
    size = tuple(images.shape[2:])
    query = tuple(query or (edge // 2 for edge in size))
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
        with restored_state(model):
            run() if run else run_backbone(model, images, [*layers])
    finally:
        for handle in handles:
            handle.remove()
    absent = set(layers) - set(found)
    if absent:
        raise ValueError(
            'layers: expected layers of one backbone that is not compiled, '
            f'got {sorted(absent)}, which did not run; choose layers by a '
            'regular expression, pattern=...')
    return AttentionRecord([*found.values()], size, query, len(images), **more)


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
        uniform=uniform_attention_distance(layer, x, pixel))


def _output_pixel(name: str, layer, inside: list, shape) -> list:
    """A pixel of a layer's input, in its output."""
    lost = [c - p for c, p in zip(layer.crop, layer.padding)]
    if not all(max(n, 0) <= i < edge - max(n, 0)
               for i, n, edge in zip(inside, lost, shape)):
        raise ValueError(
            f'query: expected a pixel at least {tuple(lost)} px from the '
            f'edges of the {tuple(shape)} px map in {name}, got '
            f'{tuple(inside)}, where it has no output')
    return [i - n for i, n in zip(inside, lost)]
