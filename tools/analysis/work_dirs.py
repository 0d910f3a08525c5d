"""What a work dir has: records of some definition, and what was logged."""
import math
import re
from collections.abc import Collection, Mapping
from pathlib import Path

from stepnet_mm.stiffness import DEFINITIONS
from stepnet_mm.utils.log_folders import in_order, parse_line


def method_of(name: str) -> str:
    """The name of a run without its ``_seedN``."""
    return re.sub(r'_seed\d+$', '', name)


def choose_definition(found: Collection[str], wanted: str | None,
                      source: str) -> str:
    """The definition of NSI that is read where records have several.

    Args:
        found (collection[str]): the definitions that the records have.
        wanted (str | None): the one that the user names; None for the first
            of :data:`DEFINITIONS` that there is.
        source (str): where the records are, for an error.

    Raises:
        ValueError: if no record has it.
    """
    if wanted is None:
        return next(name for name in DEFINITIONS if name in found)
    if wanted not in found:
        raise ValueError(
            f'{source}: expected a record of definition {wanted!r}, got '
            f'{sorted({*found})}; make one with '
            'tools/analysis/measure_stiffness.py, or name another with '
            '--definition')
    return wanted


def read_stiffness_curves(work_dir: Path) -> dict[str, list[dict]]:
    """The measurements of every ``TNSHook`` in a work dir, by its name.

    Returns:
        dict[str, list[dict]]: of each hook one dict per measurement, as
        :func:`joined` orders them: ``step``, the iteration; ``tns``,
        ``tns_median``, ``nsi_stage1_mean``, ..., ``nonfinite``.
    """
    curves: dict[str, dict[Path, list[dict]]] = {}
    for path in sorted(work_dir.glob('*/vis_data/*.json')):
        if rows := _measurements(path):
            curves.setdefault(path.stem, {})[path] = rows
    return {name: joined(starts) for name, starts in curves.items()}


def _measurements(path: Path) -> list[dict]:
    """What the TNSHook logged that the file is named after."""
    prefix = f'{path.stem}/'
    lines = (parse_line(text) or {} for text in path.read_bytes().splitlines())
    return [{key.removeprefix(prefix): value for key, value in line.items()}
            for line in lines if f'{prefix}nonfinite' in line]


def evaluations(work_dir: Path, metric: str) -> list[dict]:
    """What mmengine logged beside a metric, of all starts in a work dir.

    Raises:
        ValueError: if a line is no JSON object.
    """
    return joined({
        path: [line for line in _lines(path) if is_number(line, metric)]
        for path in work_dir.glob('*/vis_data/scalars.json')})


def joined(starts: Mapping[Path, list[dict]]) -> list[dict]:
    """What all starts of a training logged.

    Of one that was resumed, or began anew, that is all up to its first step,
    and then its own.

    Args:
        starts (mapping): a start's file -> what it logged.
    """
    found: list[dict] = []
    for path in in_order({
            path: [row['step'] for row in rows if is_number(row, 'step')]
            for path, rows in starts.items()}):
        rows = starts[path]
        first = _step(rows[0], math.inf) if rows else math.inf
        found = [row for row in found if _step(row, 0) < first] + rows
    return found


def is_number(line: dict, key: str) -> bool:
    """Whether a line has a number under a key."""
    return type(line.get(key)) in (int, float)


def _step(row: dict, default: float) -> float:
    return row['step'] if is_number(row, 'step') else default


def _lines(path: Path) -> list[dict]:
    found = []
    for number, text in enumerate(path.read_bytes().splitlines(), 1):
        if (line := parse_line(text)) is None:
            raise ValueError(
                f'{path}: expected a JSON object in each line, got '
                f'{text[:60]!r} in line {number}; delete it, a kill may have '
                'cut it')
        found.append(line)
    return found
