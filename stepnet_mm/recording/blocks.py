"""Finds residual blocks, and the modules that output x_t, f and Δt."""
import re
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from torch import nn

from ..residual import Place, Trace, trace, trace_run
from ..steps import StepSize
from ..utils.hook_helpers import unwrap
from ..utils.random_state import get_random_state, set_random_state

CONTAINERS = (nn.Sequential, nn.ModuleList)


@dataclass(frozen=True)
class Gate:
    """A known gate at the end of a residual: f goes in, f ⊗ Δt comes out."""
    module: nn.Module  # its last input is f
    delta: nn.Module  # its output is Δt


@dataclass(frozen=True)
class InputOf:
    """What a module takes, where no module outputs it."""
    module: nn.Module  # its first input is f


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
        residual (nn.Module | InputOf | None): the module whose output, or
            input, is f; None where f is taken as the block's output minus
            its input.
        step (Gate | None): the known gate at the end of the residual, which
            counts as Δt; f is its input. Any other gate is a part of f.
    """
    name: str
    stage: int
    position: int
    module: nn.Module
    definition: str = 'output'
    identity: nn.Module | None = None
    residual: nn.Module | InputOf | None = None
    step: Gate | None = None


def find_residual_blocks(model: nn.Module,
                         pattern: str | None = None,
                         run=None) -> list[ResidualBlock]:
    """The residual blocks of a model, in the order of its modules.

    One forward pass on images, of a copy without numbers, shows which
    modules add something to their input, and where (:mod:`..residual`). If
    the model takes no images, consecutive children of a container are blocks
    if they have one class and two or more layers with weights; their shortcut
    is then a guess: check it in :func:`list_blocks`. A stage is a row of
    blocks in one container with the same shape in and out. The search is
    limited to the module named ``backbone``, if there is one.

    Args:
        model (nn.Module): any model; of DDP and averaged models the one
            inside.
        pattern (str, optional): a regular expression that full names of
            blocks match, instead of the search; of nested matches the outer
            one counts.
        run (callable, optional): runs a forward pass of the model, such as
            ``lambda: model(images)``, in eval mode, for a model that takes
            something else than images.

    Returns:
        list[ResidualBlock]: all blocks, each stage's first one included.

    Raises:
        ValueError: if there is none, the pattern matches nothing, or the
            model has several backbones.
    """
    model = unwrap(model)
    modules = dict(model.named_modules())
    backbones = _backbones(modules)
    if pattern:
        names = _matching(modules, pattern)
        seen = _look(model, {_owner(name, backbones) for name in names}, run)
    else:
        prefix = _only(modules, backbones)
        seen = _look(model, {prefix}, run)
        names = _search(modules, prefix, seen)
    stages = _stages(modules, names, seen)
    places = {
        name: (stage, position) for stage, row in enumerate(
            (row for row in stages if not {*names}.isdisjoint(row)), 1)
        for position, name in enumerate(row)}
    return [ResidualBlock(name, *places[name], modules[name],
                          **_parts(modules[name], seen.shown.get(name)))
            for name in modules if name in {*names}]


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


def _backbones(modules: dict) -> list[str]:
    found: list[str] = []
    for name in modules:
        if name.split('.')[-1] == 'backbone' and not _owner(name, found):
            found.append(name)
    return found


def _owner(name: str, owners: list[str]) -> str:
    """Which of some modules holds another one; '' if none does."""
    return next((o for o in owners if name.startswith(f'{o}.')), '')


def _only(modules: dict, backbones: list[str]) -> str:
    if len(backbones) > 1:
        raise ValueError(
            f'{type(modules[""]).__name__}: expected one backbone, got '
            f'{backbones}; choose one by a regular expression for the names '
            f"of its blocks, such as blocks=r'{backbones[0]}"
            "\\.layer\\d\\.\\d+'")
    return backbones[0] if backbones else ''


def _look(model: nn.Module, owners: set[str], run) -> Trace:
    """What passes of some parts show; `refused['']`: why there was none."""
    seen, before = Trace(), get_random_state()
    try:
        for owner in owners:
            part = model.get_submodule(owner)
            found = Trace()
            if run is not None:
                with eval_mode(model):
                    found = trace_run(part, run)
            try:
                found = found if found.blocks else trace(part, partial=True)
            except ValueError as error:
                found.refused.setdefault('', str(error))
            _add(seen, found, f'{owner}.' if owner else '')
    finally:
        set_random_state(before)
    return seen


def _add(seen: Trace, found: Trace, prefix: str) -> None:
    for into, new in zip(vars(seen).values(), vars(found).values()):
        into.update({
            (prefix + key).rstrip('.'): v for key, v in new.items()})


def _search(modules: dict, prefix: str, seen: Trace) -> list[str]:
    """The outermost modules that are residual blocks, or a guess."""
    names = [name for name in seen.blocks if name]
    for name, place in seen.shown.items():
        # Those whose f only hooks can read, and no containers of blocks.
        inside = [key for key in seen.shown if _owner(key, [name])]
        if (name and place.child and not place.identity
                and name not in names and not _owner(name, names)
                and not _owner(f'{name}.{place.child}', inside)):
            names.append(name)
    # First blocks of stages, whose shortcut is a projection.
    kinds = {_kind(modules[name]) for name in names}
    names += [name for name, place in seen.shown.items() if place.identity
              and _kind(modules[name]) in kinds and not _owner(name, names)]
    held = {name: module for name, module in modules.items()
            if f'{name}.'.startswith(f'{prefix}.') or not prefix}
    if not names and not seen.shapes:
        names = _repeated(held)
    if not names:
        raise ValueError(
            f'{type(modules[prefix]).__name__}: expected blocks x + f(x), got '
            f'no residual block: {_reasons(held, seen)}; if there are any, '
            "name the blocks' modules by the regular expression blocks=...")
    return names


def _reasons(modules: dict, seen: Trace) -> str:
    """Why its repeated modules are none, the most frequent reasons."""
    repeated = {*_repeated(modules)} & {*seen.refused}
    counts = Counter(
        (type(modules[name]).__name__, reason)
        for name, reason in seen.refused.items()
        if name in repeated or not repeated)
    return '; '.join(f'of {count} {kind}, {reason}' for (kind, reason), count
                     in counts.most_common(3)) or 'it has no modules'


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
                found += [_join(name, key) for key, _ in children]
    return [name for name in found
            if not any(other.startswith(f'{name}.') for other in found)]


def _weights(module) -> int:
    return sum(p.ndim > 1 for p in module.parameters())


def _join(parent: str, key: str) -> str:
    return f'{parent}.{key}'.lstrip('.')


def _stages(modules: dict, names: list, seen: Trace) -> list[list[str]]:
    """Rows of blocks, chosen or not, of one shape.

    A block that was not chosen, or has no shortcut, still takes its place.
    Where a container holds one block, or parts of one, its own container is
    that of the row.
    """
    order = {name: i for i, name in enumerate(modules)}
    rows = _siblings(modules, names)
    done = []
    while rows:
        parent = max(rows, key=lambda name: (name.count('.'), bool(name)))
        row = sorted(rows.pop(parent), key=lambda name: order[name])
        stages = _split(row, seen)
        kinds = Counter(_kind(modules[name]) for name in row)
        repeats = max(kinds.values()) > 1 and max(map(len, stages)) > 1
        if not parent or not seen.shapes or repeats and not _is_repeated(
                modules, parent):
            done += stages
        else:
            upper = parent.rpartition('.')[0]
            rows[upper] = rows.get(upper, []) + row
    return sorted(done, key=lambda stage: order[stage[0]])


def _is_repeated(modules: dict, name: str) -> bool:
    """Whether a module, no list, is one of several of its kind in a row."""
    kind, siblings = type(modules[name]), modules[name.rpartition('.')[0]]
    return not issubclass(kind, CONTAINERS) and [
        *map(type, siblings.children())].count(kind) > 1


def _is_placed(module) -> bool:
    """Whether it is a block of add_steps."""
    return isinstance(getattr(module, 'place', None), Place)


def _kind(module: nn.Module) -> type:
    """Its class, without that of a step: first blocks may have none."""
    kind = type(module)
    return kind.__bases__[-1] if _is_placed(module) else kind


def _siblings(modules: dict, names: list) -> dict[str, list[str]]:
    """The children of the kinds of blocks, of each container of blocks."""
    kinds: dict[str, tuple] = {}
    for name in names:
        parent = name.rpartition('.')[0]
        kinds[parent] = (*kinds.get(parent, ()), _kind(modules[name]))
    return {parent: [_join(parent, key)
                     for key, child in modules[parent].named_children()
                     if isinstance(child, own)]
            for parent, own in kinds.items()}


def _split(row: list[str], seen: Trace) -> list[list[str]]:
    """A row of blocks by their shapes; a change of shape begins a stage.

    That of a projection which ends a row of one shape (Hourglass) does not.
    """
    stages: list[list[str]] = []
    current: dict = {}  # shape -> stage, as two streams may take turns
    for name in row:
        taken, given = seen.shapes.get(name, (None, None))
        if taken != given or given not in current:
            one = len(stages) == 1 and taken in current and (
                name == row[-1] and name in seen.shown)
            if not one:
                stages.append([])
            current[given] = stages[-1]
        current[given].append(name)
    return stages


def _parts(module: Any, place: Place | None) -> dict:
    """The fields of a ResidualBlock that its module decides."""
    if place is None:
        return dict(definition='output')
    child: Any
    child, identity = (name and module.get_submodule(name)
                       for name in (place.child, place.identity))
    # A block of add_steps shows where f goes without its step.
    step = _gate(module.step if _is_placed(module) else child)
    if step:
        child = None
    elif child and place.takes:
        child = InputOf(child)
    return dict(definition='residual', identity=identity, residual=child,
                step=step)


def _gate(module) -> Gate | None:
    if isinstance(module, StepSize):
        return Gate(module, module.delta)
    if (type(module).__name__ == 'SELayer'
            and hasattr(module, 'global_avgpool') and hasattr(module, 'conv2')
            and not getattr(module, 'return_weight', False)):
        return Gate(module, module.conv2)
    return None


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
