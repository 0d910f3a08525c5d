"""What a work dir has: records of some definition, and what was logged."""
import math
import re
from collections.abc import Collection, Iterable
from pathlib import Path

from stepnet_mm.stiffness import DEFINITIONS, read_stiffness_record
from stepnet_mm.utils.log_folders import in_order, parse_line


def method_of(name: str) -> str:
    """The name of a run without its ``_seedN``."""
    return re.sub(r'_seed\d+$', '', name)


def choose_definition(found: Collection[str], wanted: str | None,
                      source: Path) -> str:
    """The definition of NSI that is read where records have several.

    Args:
        found (collection[str]): the definitions that the records have.
        wanted (str | None): the one that the user names; None for the first
            of :data:`DEFINITIONS` that there is.
        source (Path): where the records are, for an error.

    Raises:
        ValueError: if no record has it.
    """
    chosen = wanted or next(name for name in DEFINITIONS if name in found)
    if chosen not in found:
        raise ValueError(
            f'{source}: expected a record of definition {chosen!r}, got '
            f'{sorted(found)}; make one with '
            'tools/analysis/measure_stiffness.py, or name another with '
            '--definition')
    return chosen


def of_one_definition(paths: Iterable[Path], wanted: str | None,
                      source: Path) -> tuple[str, list[Path]]:
    """The records of one definition of NSI, some of them unfinished.

    Args:
        paths (iterable[Path]): of all records, at least one.
        wanted (str | None): as in :func:`choose_definition`.
        source (Path): likewise.

    Returns:
        tuple[str, list[Path]]: the definition, and its records in their
        order.
    """
    found: dict[str, list[Path]] = {}
    for path in paths:
        header = read_stiffness_record(path, partial=True).header
        found.setdefault(header.definition, []).append(path)
    chosen = choose_definition(found, wanted, source)
    return chosen, found[chosen]


def read_stiffness_curves(work_dir: Path) -> dict[str, list[dict]]:
    """The measurements of every ``TNSHook`` in a work dir, by its name.

    Returns:
        dict[str, list[dict]]: of each hook one dict per measurement, of all
        starts: ``step``, the iteration; ``tns``, ``tns_median``,
        ``nsi_stage1_mean``, ..., ``nonfinite``.
    """
    curves: dict[str, dict[Path, list[dict]]] = {}
    for path in sorted(work_dir.glob('*/vis_data/*.json')):
        prefix = f'{path.stem}/'  # a TNSHook logs under its name
        if lines := _lines(path, f'{prefix}nonfinite'):
            curves.setdefault(path.stem, {})[path] = [
                {key.removeprefix(prefix): value
                 for key, value in line.items()} for line in lines]
    return {name: _joined(starts) for name, starts in curves.items()}


def evaluations(work_dir: Path, metric: str) -> list[dict]:
    """What mmengine logged beside a metric, of all starts in a work dir."""
    return _joined({path: _lines(path, metric)
                    for path in work_dir.glob('*/vis_data/scalars.json')})


def is_number(line: dict, key: str) -> bool:
    """Whether a line has a number under a key."""
    return type(line.get(key)) in (int, float)


def _lines(path: Path, key: str) -> list[dict]:
    """The lines of a log with a step and a number under a key.

    Others are passed over, such as a line that a kill cut.
    """
    lines = (parse_line(text) or {} for text in path.read_bytes().splitlines())
    return [line for line in lines
            if is_number(line, key) and is_number(line, 'step')]


def _joined(starts: dict[Path, list[dict]]) -> list[dict]:
    """What all starts of a training logged, a start's file -> its lines.

    Of a start before one that was resumed, or began anew, these are the
    lines up to the first step of the later one.
    """
    found: list[dict] = []
    for path in in_order({path: [row['step'] for row in rows]
                          for path, rows in starts.items()}):
        rows = starts[path]
        first = rows[0]['step'] if rows else math.inf
        found = [row for row in found if row['step'] < first] + rows
    return found
