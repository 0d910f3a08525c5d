"""Finds residual blocks, and the modules that output x_t, f and Δt."""
import re
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import torch
from torch import nn

from ..steps import StepSize
from ..utils.hook_helpers import unwrap

#: Attributes of blocks without an activation after their last sum, so that
#: f is output minus input.
PLAIN_SUMS = (
    {'ln1', 'attn', 'ln2', 'ffn'},  # mmpretrain's ViT
    {'norm1', 'attn', 'norm2', 'ffn'},  # Swin of mmdet and mmpretrain
    {'norm1', 'attn', 'norm2', 'mlp'},  # ViT and Swin of timm, torchvision
    {'ln_1', 'self_attention', 'ln_2', 'mlp'},  # torchvision's ViT
    {'depthwise_conv', 'norm', 'pointwise_conv1', 'pointwise_conv2'},
    {'conv_dw', 'norm', 'mlp'},  # timm's ConvNeXt, above mmpretrain's
    {'block', 'layer_scale', 'stochastic_depth'},  # torchvision's
)
CONTAINERS = (nn.Sequential, nn.ModuleList)
#: Attributes by which blocks of the libraries say whether they have one.
SHORTCUTS = ('add_identity', 'with_res_shortcut', 'use_res_connect')


@dataclass(frozen=True)
class Gate:
    """A known gate at the end of a residual: f goes in, f ⊗ Δt comes out."""
    module: nn.Module  # its last input is f
    delta: nn.Module  # its output is Δt


@dataclass(frozen=True)
class ResidualBlock:
    """Where a residual block shows the terms of Eq. 7.

    Attributes:
        name (str): its name in the model.
        stage (int): which stage it belongs to, from 1.
        position (int): its index in the stage, from 0.
        module (nn.Module): the block.
        definition (str): the best one that it allows: ``'residual'`` where f
            can be seen, otherwise ``'output'``.
        identity (nn.Module | None): the module whose output is x_t; None
            where x_t is the block's input.
        residual (nn.Module | None): the module whose output is f; None where
            f is taken as the block's output minus its input.
        step (Gate | None): the known gate at the end of the residual, which
            counts as Δt; f is its input. Any other gate is a part of f.
    """
    name: str
    stage: int
    position: int
    module: nn.Module
    definition: str = 'output'
    identity: nn.Module | None = None
    residual: nn.Module | None = None
    step: Gate | None = None


def find_residual_blocks(model: nn.Module,
                         pattern: str | None = None,
                         run=None) -> list[ResidualBlock]:
    """The residual blocks of a model, in the order of its modules.

    Known are the blocks of the ResNet families of mmdet, mmpretrain,
    torchvision and timm, ViT, Swin and ConvNeXt. In a model with none of them
    consecutive children of a container are blocks, if they have one class
    and two or more layers with weights. Their shortcut is then a guess; check
    it in :func:`list_blocks`. The children of one container are one stage.
    The search is limited to the module named ``backbone``, if there is one.

    Args:
        model (nn.Module): any model; of DDP and averaged models the one
            inside.
        pattern (str, optional): a regular expression that full names of
            blocks match, instead of the search; of nested matches the outer
            one counts.
        run (callable, optional): runs a forward pass of the model, such as
            ``lambda: model(images)``, in eval mode without gradients. A
            stage is then a row of consecutive blocks with the same shape in
            and out.

    Returns:
        list[ResidualBlock]: all blocks, each stage's first one included.

    Raises:
        ValueError: if there is none, the pattern matches nothing, or the
            model has several backbones.
    """
    model = unwrap(model)
    modules = dict(model.named_modules())
    names = _matching(modules, pattern) if pattern else _search(modules)
    rows = _siblings(modules, names)
    if run is not None:
        shapes = _observe_shapes(model, sum(rows, []), run)
        rows = [part for row in rows for part in _split(row, shapes)]
    places = _places(rows, names)
    return [ResidualBlock(name, *places[name], modules[name],
                          **_parts(modules[name])) for name in names]


def list_blocks(blocks: list[ResidualBlock]) -> str:
    """A table of blocks for a terminal, with their definitions."""
    rows = [('stage', 'block', 'class', 'definition', 'measured', 'step size')]
    for b in blocks:
        rows.append((str(b.stage), b.name, type(b.module).__name__,
                     b.definition, 'yes' if b.position else 'no (first)',
                     type(b.step.module).__name__ if b.step else '-'))
    widths = [max(map(len, column)) for column in zip(*rows)]
    return '\n'.join('  '.join(map(str.ljust, row, widths)).rstrip()
                     for row in rows)


def _matching(modules: dict, pattern: str) -> list[str]:
    found, reason = [], f'matches no module of {type(modules[""]).__name__}'
    try:
        found = [name for name in modules
                 if name and re.fullmatch(pattern, name)]
    except re.error as error:
        reason = f'has {error}'
    outer = [name for name in found
             if not any(name.startswith(f'{other}.') for other in found)]
    if not outer:
        raise ValueError(
            'blocks: expected a regular expression for whole names of '
            r"residual blocks, such as r'.*layer\d\.\d+', got "
            f'{pattern!r}, which {reason}')
    return outer


def _search(modules: dict) -> list[str]:
    prefix = _backbone(modules)
    found = {k: m for k, m in modules.items() if k.startswith(prefix)}
    names = [k for k, m in found.items() if _shows_f(m)] or _repeated(found)
    if not names:
        raise ValueError(
            f'{type(modules[""]).__name__}: expected a ResNet, ViT, Swin or '
            'ConvNeXt, or a container that repeats one block, got no residual '
            'block that is known here or can be told by its structure; name '
            "the blocks' modules by the regular expression blocks=...")
    return names


def _backbone(modules: dict) -> str:
    """The prefix of the names to look into."""
    found = [name for name in modules if name.split('.')[-1] == 'backbone']
    if len(found) > 1:
        raise ValueError(
            f'{type(modules[""]).__name__}: expected one backbone, got '
            f'{found}; choose one by a regular expression for the names of '
            f"its blocks, such as blocks=r'{found[0]}\\.layer\\d\\.\\d+'")
    return f'{found[0]}.' if found else ''


def _repeated(modules: dict) -> list[str]:
    """Children that their container repeats, the innermost ones."""
    found = []
    for name, container in modules.items():
        if not isinstance(container, CONTAINERS):
            continue
        for kind, group in groupby(
                container.named_children(), lambda item: type(item[1])):
            children = list(group)
            if len(children) > 1 and not issubclass(kind, CONTAINERS) and all(
                    _weights(child) > 1 for _, child in children):
                found += [
                    f'{name}.{key}'.lstrip('.') for key, child in children
                    if not any(getattr(child, flag, None) is False
                               for flag in SHORTCUTS)]
    return [name for name in found
            if not any(other.startswith(f'{name}.') for other in found)]


def _weights(module) -> int:
    return sum(p.ndim > 1 for p in module.parameters())


def _siblings(modules: dict, names: list) -> list[list[str]]:
    """The blocks of each container, chosen or not."""
    kinds: dict[str, tuple] = {}
    for name in names:
        parent = name.rpartition('.')[0]
        kinds[parent] = (*kinds.get(parent, ()), type(modules[name]))
    return [[f'{parent}.{key}'.lstrip('.')
             for key, child in modules[parent].named_children()
             if isinstance(child, own)] for parent, own in kinds.items()]


def _places(rows: list[list[str]],
            names: list) -> dict[str, tuple[int, int]]:
    """Stage and position of each name; a row of siblings is a stage.

    A block that was not chosen, or has no shortcut, still takes its place.
    """
    rows = [row for row in rows if not set(row).isdisjoint(names)]
    return {name: (stage, position) for stage, row in enumerate(rows, 1)
            for position, name in enumerate(row)}


def _shows_f(module) -> bool:
    """Whether it is a block whose f is known; no layer without children is."""
    return bool(module._modules) and (
        _is_resnet_block(module) or _is_plain_sum(module))


def _parts(module) -> dict:
    """The fields of a ResidualBlock that its module decides."""
    if not _is_resnet_block(module):
        return dict(definition='residual' if _shows_f(module) else 'output')
    last = _last_layer(module)
    step = _gate(getattr(module, 'step', None)) or _gate(last)
    return dict(
        definition='residual', identity=module._modules.get('downsample'),
        residual=None if step else last, step=step)


def _is_plain_sum(module) -> bool:
    if any(all(hasattr(module, part) for part in parts)
           for parts in PLAIN_SUMS):
        return True
    order = list(module._modules)
    return {'norm1', 'conv1', 'norm2', 'conv2'} <= set(order) and (
        order.index('norm1') < order.index('conv1'))  # pre-activation


def _is_resnet_block(module) -> bool:
    """Whether it is conv, norm, ..., sum, activation or norm, conv, ..., sum.

    Pre-activation counts where its norms and convolutions alternate.
    """
    if not (hasattr(module, 'downsample') and hasattr(module, 'conv1')):
        return False
    if _is_preact(module):
        return True
    convs, norms = _layers(module)
    order = list(map(id, module._modules.values()))
    return norms[-1] is not None and (
        order.index(id(convs[-1])) < order.index(id(norms[-1])))


def _is_preact(module) -> bool:
    convs, norms = _layers(module)
    places = {id(m): i for i, m in enumerate(module._modules.values())}
    found = [places.get(id(layer), -1)
             for pair in zip(norms, convs) for layer in pair]
    return found[0] >= 0 and found == sorted({*found})


def _layers(module) -> tuple[list, list]:
    """Its convolutions, and a norm or None for each of them."""
    count = 3 if getattr(module, 'conv3', None) else 2
    convs = [getattr(module, f'conv{i}', None) for i in range(1, count + 1)]
    norms = [getattr(module, f'norm{i}', None) or getattr(
        module, f'bn{i}', None) for i in range(1, count + 1)]
    return convs, norms


def _last_layer(module):
    """The last layer of the residual: a gate or plugin, a norm or conv."""
    for name in (*getattr(module, 'after_conv3_plugin_names', ())[::-1],
                 'se', 'se_layer'):
        if getattr(module, name, None) is not None:
            return getattr(module, name)
    convs, norms = _layers(module)
    return convs[-1] if _is_preact(module) else norms[-1]


def _gate(module) -> Gate | None:
    if isinstance(module, StepSize):
        return Gate(module, module.delta)
    if (type(module).__name__ == 'SELayer'
            and hasattr(module, 'global_avgpool') and hasattr(module, 'conv2')
            and not getattr(module, 'return_weight', False)):
        return Gate(module, module.conv2)
    return None


def _split(row: list[str], shapes: dict) -> list[list[str]]:
    """A row of blocks, cut where shapes change."""
    parts: list[list[str]] = []
    before = None
    for name in row:
        taken, given = shapes.get(name, (None, None))
        if not parts or not before == taken == given:
            parts.append([])
        parts[-1].append(name)
        before = given
    return parts


@contextmanager
def eval_mode(model: nn.Module):
    """Eval mode; afterwards each module's own mode again."""
    modes = {module: module.training for module in model.modules()}
    try:
        model.eval()
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode


@torch.no_grad()
def _observe_shapes(model, names: list, run) -> dict:
    """Names -> shapes of a sample that goes in and that comes out."""
    shapes = {}

    def note(name, module, args, output):
        shapes[name] = [None if x is None else tuple(x.shape[1:])
                        for x in (first_tensor(args), first_tensor(output))]

    handles = [model.get_submodule(name).register_forward_hook(
        partial(note, name)) for name in names]
    try:
        with eval_mode(model):
            run()
    finally:
        for handle in handles:
            handle.remove()
    return shapes


def first_tensor(values) -> torch.Tensor | None:
    """The first tensor of a module's inputs or outputs, if any."""
    if isinstance(values, torch.Tensor):
        return values
    if isinstance(values, dict):
        values = tuple(values.values())
    for value in values if isinstance(values, (tuple, list)) else ():
        if isinstance(value, torch.Tensor):
            return value
    return None


def refuse_compiled(model: nn.Module) -> None:
    """Raise a ValueError if a part of a model is compiled.

    It would ignore hooks that come later.
    """
    for name, module in model.named_modules():
        own = vars(module).get('forward')
        if (module._modules and hasattr(module, '_orig_mod')
                or getattr(module, '_compiled_call_impl', None)
                or own and hasattr(own, '_torchdynamo_orig_callable')):
            raise ValueError(
                f'{name or type(module).__name__}: expected a module that is '
                'not compiled, got a compiled one, which does not see hooks '
                'that come later; enter the recorder before torch.compile, '
                'or measure without it')
