"""Parameters and FLOPs of a network, by part and for its step sizes.

FLOPs are mmengine's, those of one image in eval mode: a multiply-add is one.
"""
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from mmengine.analysis import FlopAnalyzer, parameter_count
from torch import Tensor, nn

from ..steps import StepSize
from .forward import Forward

COLUMNS = ('parameters', 'step_parameters', 'mmengine_flops')


def count(forward: Forward, images: Tensor) -> dict:
    """The counts of a model for one image.

    Args:
        forward (Forward): the model in eval mode.
        images (Tensor): (1, C, H, W).

    Returns:
        dict: names of ``model`` and ``backbone``; ``input_shape``; ``steps``,
        the types of its step-size modules and their counts; ``parts``, a dict
        of counts (:data:`COLUMNS`) per part, ``total`` last; ``regions``, how
        many a RoI head looked at; ``mmengine_left_out``, operators that
        mmengine saw and did not count, how often each.
    """
    model = forward.model
    with _watch_regions(model) as regions:
        flops, left_out = mmengine_flops(forward, images)
    parameters, steps = parameter_count(model), find_steps(model)
    counts = {name: np.array([
        parameters[name],
        sum(parameters[step] for step in steps if _is_inside(step, name)),
        flops[name]]) for name, _ in model.named_modules()}
    return dict(
        model=type(model).__name__,
        backbone=type(getattr(model, 'backbone', None)).__name__,
        input_shape=list(images.shape),
        steps=dict(
            types=dict(Counter(type(m).__name__ for m in steps.values())),
            **_named(sum((counts[name] for name in steps), 0 * counts['']))),
        parts=[
            dict(part=name, **_named(row))
            for name, row in group_parts(model, counts).items()
        ],
        regions=max(regions, default=0),
        mmengine_left_out={
            name.rpartition('::')[2]: number
            for name, number in left_out.most_common()
        })


def find_steps(model: nn.Module) -> dict[str, StepSize]:
    """Names of the step-size modules -> modules, the outermost ones."""
    found: dict[str, StepSize] = {}
    for name, module in model.named_modules():
        if isinstance(module, StepSize) and not any(
                _is_inside(name, other) for other in found):
            found[name] = module
    return found


@torch.no_grad()
def mmengine_flops(forward: Forward, images: Tensor) -> tuple[dict, Counter]:
    """Module names -> FLOPs of mmengine, and the operators left out."""
    analyzer = FlopAnalyzer(forward, images)
    analyzer.unsupported_ops_warnings(False).uncalled_modules_warnings(False)
    flops = {name: int(analyzer.total(f'model.{name}'.rstrip('.')))
             for name, _ in forward.model.named_modules()}
    return flops, analyzer.unsupported_ops()


def group_parts(model: nn.Module, counts: dict) -> dict[str, np.ndarray]:
    """Parts of a model -> (3,) counts, with their total at the end.

    Args:
        model (nn.Module): its children are the parts, but its ``backbone``
            is taken apart by stage.
        counts (dict): module names -> (3,) counts.
    """
    parts = {}
    for name, child in model.named_children():
        if name == 'backbone':
            parts.update(group_stages(child, counts))
        else:
            parts[name] = counts[name]
    parts['other'] = counts[''] - sum(parts.values())
    return {k: v for k, v in parts.items() if v.any()} | {'total': counts['']}


def group_stages(backbone: nn.Module, counts: dict) -> dict[str, np.ndarray]:
    """Stages of a backbone -> (3,) counts, with the stem and the tail.

    Stages are its sequences of blocks. What it registers after the first
    stage is the tail (a last norm), everything else the stem.
    """
    children = dict(backbone.named_children())
    stages = [
        name for name, child in children.items()
        if isinstance(child, (nn.Sequential, nn.ModuleList)) and name != 'stem'
    ]
    if not stages:
        return dict(backbone=counts['backbone'])
    later = list(children)[list(children).index(stages[0]):]
    inner = {name: counts[f'backbone.{name}'] for name in later}
    tail = sum(
        (inner.pop(name) for name in later if name not in stages),
        np.zeros_like(counts['backbone']))
    stem = counts['backbone'] - sum(inner.values()) - tail
    return dict(stem=stem, **inner, tail=tail)


def _named(row: np.ndarray) -> dict[str, int]:
    """(3,) counts -> column names -> counts."""
    return dict(zip(COLUMNS, row.tolist()))


def _is_inside(name: str, parent: str) -> bool:
    """Whether a module is another one, or in it."""
    return not parent or name == parent or name.startswith(f'{parent}.')


@contextmanager
def _watch_regions(model: nn.Module) -> Iterator[list[int]]:
    """A list that takes the number of regions of each cut from features."""
    regions: list[int] = []
    hooks = [
        module.register_forward_pre_hook(
            lambda _, args: regions.append(len(args[1])))
        for module in model.modules()
        if type(module).__name__.endswith('RoIExtractor')
    ]
    yield regions
    for hook in hooks:
        hook.remove()
