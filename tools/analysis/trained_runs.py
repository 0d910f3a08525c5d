"""TNS and a metric of training runs, read from what they left on disk."""
import math
from pathlib import Path

import pandas as pd
from work_dirs import choose_definition, evaluations, is_number, method_of

from stepnet_mm.stiffness import (
    DEFINITIONS,
    RecordHeader,
    read_stiffness_record,
)

#: What TNSMetric's keys begin with, beside other metrics.
PREFIX = 'stiffness_eval/'


def read_run(work_dir: Path, metric: str, statistic: str = 'tns',
             definition: str | None = None) -> dict:
    """The last value of a run's metric, and its TNS.

    TNS is that of the newest record ``*.jsonl`` of the definition; without a
    record, the TNS that TNSMetric logged beside the metric.

    Args:
        work_dir (Path): of a training run.
        metric (str): the metric's key in ``scalars.json``.
        statistic (str): of TNS over samples, a key of
            :func:`summarize_tns`; the mean of Eq. 5 by default.
        definition (str, optional): of NSI, as in :func:`choose_definition`;
            what was logged does not say its own.

    Returns:
        dict: ``name``, ``tns``, ``metric``, ``source``, the file that TNS
        comes from, and ``definition``, what must agree between records.

    Raises:
        ValueError: if there is no such metric or no TNS.
    """
    lines = evaluations(work_dir, metric)
    if not lines:
        raise ValueError(
            f'{work_dir}: expected a number {metric!r} in a '
            '<run>/vis_data/scalars.json, got none; name another key with '
            '--metric')
    return dict(name=work_dir.resolve().name, metric=lines[-1][metric],
                **_tns(work_dir, statistic, lines[-1], definition))


def check_definitions(runs: pd.DataFrame) -> None:
    """Refuse runs whose TNS do not compare.

    Raises:
        ValueError: on several definitions of NSI.
    """
    some = dict(zip(runs['definition'], runs['name']))
    if len(some) > 1:
        raise ValueError(
            'runs: expected TNS of one definition of NSI, on the same data, '
            f'got (with a run of each): {some}; measure all runs alike, or '
            'name one with --definition (logged scalars do not say theirs)')


def method_means(runs: pd.DataFrame) -> pd.DataFrame:
    """Name, TNS and metric of each method, the means of its seeds."""
    return runs.groupby(runs['name'].map(method_of), sort=False)[
        ['tns', 'metric']].mean().reset_index()


def _tns(work_dir: Path, statistic: str, line: dict,
         definition: str | None) -> dict:
    """TNS of a run, where it comes from and which definition it follows."""
    if found := [*work_dir.glob('*.jsonl')]:
        path = _newest(found, definition, work_dir)
        record = read_stiffness_record(path)
        return dict(tns=record.tns_summary()[statistic]
                    if record.finite.any() else math.inf,
                    source=path.name, definition=_conditions(record.header))
    if is_number(line, key := PREFIX + statistic) and definition is None:
        return dict(tns=line[key], source='scalars.json',
                    definition='unknown')
    raise ValueError(
        f'{work_dir}: expected a record *.jsonl or, without --definition, '
        f'{key} beside the metric, got neither; make one with '
        'tools/analysis/measure_stiffness.py or train with TNSMetric in '
        'val_evaluator')


def _newest(paths: list[Path], wanted: str | None, source: Path) -> Path:
    """The newest record of the definition that is read.

    Older files are not looked at: they may be damaged, or of somebody else.
    """
    newest: dict[str, Path] = {}
    for path in sorted(paths, key=lambda path: -path.stat().st_mtime):
        name = read_stiffness_record(path, partial=True).header.definition
        newest.setdefault(name, path)
        if name == (wanted or DEFINITIONS[0]):
            break
    return newest[choose_definition(newest, wanted, source)]


def _conditions(header: RecordHeader) -> str:
    """What must agree between all records."""
    kind = 'start' if header.meta.get('checkpoint') == 'none' else 'trained'
    return (f'{header.definition}, {kind} network, '
            f'{header.meta.get("dataset", "unknown data")}')
