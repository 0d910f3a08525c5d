"""What a work dir has: stiffness records, and what was logged."""
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from stepnet_mm.stiffness import DEFINITIONS, read_stiffness_record
from stepnet_mm.utils.training_logs import logged


def method_of(name: str) -> str:
    """The name of a run without its ``_seedN``."""
    return re.sub(r'_seed\d+$', '', name)


def of_one_definition(paths: Iterable[Path], wanted: str | None,
                      source: Path) -> list[Path]:
    """The records of one definition of NSI, some of them unfinished.

    It is the wanted one or, with None, the first of :data:`DEFINITIONS` that
    a record has.

    Raises:
        ValueError: if no record has it, or a file is no record.
    """
    found: dict[str, list[Path]] = {}
    for path in paths:
        header = read_stiffness_record(path, partial=True).header
        found.setdefault(header.definition, []).append(path)
    chosen = wanted or next(filter(found.get, DEFINITIONS), DEFINITIONS[0])
    if chosen not in found:
        raise ValueError(
            f'{source}: expected a record of definition {chosen!r}, got '
            f'{sorted(found)}; make one with measure_stiffness.py, or name '
            'another --definition')
    return found[chosen]


def read_stiffness_curves(work_dir: Path) -> dict[str, list[dict]]:
    """The measurements of every ``TNSHook`` in a work dir, by its name.

    Each has ``step``, the iteration, ``tns``, ``nsi_stage1_mean`` and so on.
    """
    curves = {}
    for hook in sorted({p.stem for p in work_dir.glob('*/vis_data/*.json')}):
        prefix = f'{hook}/'  # a TNSHook logs under its name
        if lines := _logged(work_dir, hook, f'{prefix}nonfinite'):
            curves[hook] = [
                {key.removeprefix(prefix): value
                 for key, value in line.items()} for line in lines]
    return curves


def _logged(work_dir: Path, name: str, key: str) -> list[dict]:
    """The lines of a log, of all starts, with a step and a number under a key.

    Of a start these are the lines before the first step of a later one.
    """
    found: list[dict] = []
    most = 0
    for lines in logged(work_dir, name):
        if rows := [line for line in lines if {
                type(line.get(k)) for k in (key, 'step')} <= {int, float}]:
            most = max(most, rows[-1]['step'])
            found = [row for row in found
                     if row['step'] < rows[0]['step']] + rows
    if found and found[-1]['step'] < most:
        print(f'{work_dir}: the last start, begun anew or from an older '
              f'checkpoint, logged {key} up to step {found[-1]["step"]}; what '
              f'earlier ones logged up to {most} is left out', file=sys.stderr)
    return found
