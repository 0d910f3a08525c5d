"""What the recorder reads: blocks, and the modules with x_t, f and Δt."""
import re
from dataclasses import dataclass
from typing import Any

from torch import nn

from ..residual import Place, SearchResult, search
from ..residual.stages import is_placed, owner_of, residual_modules, stages_of
from ..steps import StepSize
from ..utils.hook_helpers import unwrap
from ..utils.random_state import get_random_state, set_random_state


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
                         inputs=None) -> list[ResidualBlock]:
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
        inputs (optional): as ``images`` of :func:`.add_steps`, for a network
            that takes something else than images.

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
        seen = _look(model, {owner_of(name, backbones) for name in names},
                     inputs)
    else:
        prefix = _only(modules, backbones)
        seen = _look(model, {prefix}, inputs)
        try:
            names = residual_modules(model, seen, prefix)
        except ValueError as error:
            raise ValueError(
                f'{error}; if there are any, name the modules of blocks by '
                'the regular expression blocks=...') from None
    places = {
        name: (stage, position)
        for stage, row in enumerate(stages_of(model, names, seen), 1)
        for position, name in enumerate(row)}
    return [ResidualBlock(name, *places[name], modules[name],
                          **_parts(modules[name], seen.readable.get(name)))
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
        if name.split('.')[-1] == 'backbone' and not owner_of(name, found):
            found.append(name)
    return found


def _only(modules: dict, backbones: list[str]) -> str:
    if len(backbones) > 1:
        raise ValueError(
            f'{type(modules[""]).__name__}: expected one backbone, got '
            f'{backbones}; choose one by a regular expression for the names '
            f"of its blocks, such as blocks=r'{backbones[0]}"
            "\\.layer\\d\\.\\d+'")
    return backbones[0] if backbones else ''


def _look(model: nn.Module, owners: set[str], inputs) -> SearchResult:
    """What passes of some parts show; `refused['']`: why there was none."""
    seen, before = SearchResult(), get_random_state()
    try:
        for owner in owners if inputs is None else ['']:
            try:
                found = search(model.get_submodule(owner), inputs, True)
            except ValueError as error:
                if inputs is not None:
                    raise
                found = SearchResult(refused={'': str(error)})
            _add(seen, found, f'{owner}.' if owner else '')
    finally:
        set_random_state(before)
    return seen


def _add(seen: SearchResult, found: SearchResult, prefix: str) -> None:
    for into, new in zip(vars(seen).values(), vars(found).values()):
        into.update({(prefix + key).rstrip('.'): v for key, v in new.items()})


def _parts(module: Any, place: Place | None) -> dict:
    """The fields of a ResidualBlock that its module decides."""
    if place is None:
        return dict(definition='output')
    child: Any
    child, identity = (name and module.get_submodule(name)
                       for name in (place.child, place.identity))
    # In a block of add_steps the step stands between f and what shows it.
    step = _gate(module.step if is_placed(module) else child)
    if step:
        child = None
    elif child and place.f_is_input:
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
