"""The residual blocks of a model in stages; a guess where no pass succeeds."""
from collections import Counter
from itertools import groupby

from torch import nn

from .block_search import Place, SearchResult

CONTAINERS = (nn.Sequential, nn.ModuleList)


def residual_modules(model: nn.Module, seen: SearchResult,
                     prefix: str = '') -> list[str]:
    """The outermost modules that are residual blocks, or a guess.

    First blocks of stages count, whose shortcut is a projection. Where no
    pass showed anything, consecutive children of a container are blocks if
    they have one class and two or more layers with weights.

    Args:
        model (nn.Module): the model.
        seen (SearchResult): what its pass showed.
        prefix (str): the part of the model that the pass looked at.

    Raises:
        ValueError: if there is none; it has the most frequent reasons.
    """
    modules = dict(model.named_modules())
    names = [name for name in seen.blocks if name]
    for name, place in seen.readable.items():
        # Those whose f only hooks can read, and no containers of blocks.
        inside = [key for key in seen.readable if owner_of(key, [name])]
        if (name and place.child and not place.identity
                and name not in names and not owner_of(name, names)
                and not owner_of(f'{name}.{place.child}', inside)):
            names.append(name)
    kinds = {_kind(modules[name]) for name in names}
    names += [name for name, place in seen.readable.items() if place.identity
              and _kind(modules[name]) in kinds and not owner_of(name, names)]
    held = {name: module for name, module in modules.items()
            if f'{name}.'.startswith(f'{prefix}.') or not prefix}
    if not names and not seen.shapes:
        names = _repeated(held)
    if not names:
        raise ValueError(
            f'{type(modules[prefix]).__name__}: expected blocks x + f(x), got '
            f'no residual block: {refusals(held, seen)}')
    return names


def refusals(modules: dict, seen: SearchResult) -> str:
    """Why modules, of repeated ones these alone, are no residual blocks."""
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


def owner_of(name: str, owners: list[str]) -> str:
    """Which of some modules holds another one; '' if none does."""
    return next((o for o in owners if name.startswith(f'{o}.')), '')


def stages_of(model: nn.Module, names: list[str],
              seen: SearchResult) -> list[list[str]]:
    """Rows of blocks of one shape that hold some of the named ones.

    A block that is not named, or has no shortcut, still takes its place.
    Where a container holds one block, or parts of one, its own container is
    that of the row.
    """
    modules = dict(model.named_modules())
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
    return sorted((row for row in done if not {*names}.isdisjoint(row)),
                  key=lambda row: order[row[0]])


def _is_repeated(modules: dict, name: str) -> bool:
    """Whether a module, no list, is one of several of its kind in a row."""
    kind, siblings = type(modules[name]), modules[name.rpartition('.')[0]]
    return not issubclass(kind, CONTAINERS) and [
        *map(type, siblings.children())].count(kind) > 1


def is_placed(module) -> bool:
    """Whether it is a block of add_steps."""
    return isinstance(getattr(module, 'place', None), Place)


def _kind(module: nn.Module) -> type:
    """Its class, without that of a step: first blocks may have none."""
    kind = type(module)
    return kind.__bases__[-1] if is_placed(module) else kind


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


def _split(row: list[str], seen: SearchResult) -> list[list[str]]:
    """A row of blocks by their shapes; a change of shape begins a stage.

    Unless it is the last block's, behind blocks of one shape (Hourglass).
    """
    stages: list[list[str]] = []
    current: dict = {}  # shape -> stage, as two streams may take turns
    for name in row:
        taken, given = seen.shapes.get(name, (None, None))
        if taken != given or given not in current:
            one = len(stages) == 1 and taken in current and (
                name == row[-1] and name in seen.readable)
            if not one:
                stages.append([])
            current[given] = stages[-1]
        current[given].append(name)
    return stages
