"""TNS and a metric of training runs, read from what they left on disk."""
import csv
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

from ..stiffness import RecordHeader, read_stiffness_record

#: What TNSMetric's keys begin with, beside other metrics.
PREFIX = 'stiffness_eval/'


class Run(TypedDict):
    """One run, a point of Fig. 7."""
    name: str
    tns: float
    metric: float
    source: str  # the file that TNS comes from
    definition: str | None  # what must agree between records, if known


def read_runs_table(path: Path, statistic: str = 'tns') -> list[Run]:
    """The runs of a CSV file with the columns name, tns and metric.

    Args:
        path (Path): the file.
        statistic (str): the column of TNS, named as in :func:`read_run`.

    Raises:
        ValueError: if it is no text, or a column is not there or holds no
            numbers.
    """
    try:
        with open(path, newline='') as file:
            rows = list(csv.DictReader(file))
        return [
            Run(name=row['name'],
                tns=float(row[statistic]),
                metric=float(row['metric']),
                source=path.name,
                definition=None) for row in rows
        ]
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise ValueError(
            f'{path}: expected the columns name, {statistic} and metric with '
            f'numbers in the last two, got {error!r}') from None


def read_run(work_dir: Path, metric: str, pattern: str = '*.jsonl',
             best: bool = False, statistic: str = 'tns') -> Run:
    """One run: its metric, and TNS from its record or its scalars.

    Args:
        work_dir (Path): of a training run.
        metric (str): the metric's key in ``scalars.json``.
        pattern (str): file name of the records; the newest one is taken.
            Without a record, TNS is what TNSMetric logged beside the metric.
        best (bool): whether the highest value of the metric is taken, in
            place of the last one.
        statistic (str): of TNS over samples, a key of
            :func:`summarize_tns`; the mean of Eq. 5 by default.

    Raises:
        FileNotFoundError: if there is no such folder.
        ValueError: if it has no such metric or no TNS.
    """
    if not work_dir.is_dir():
        raise FileNotFoundError(f'{work_dir}: expected a work dir, got none')
    lines = [line for line in _scalars(work_dir) if _is_number(line, metric)]
    if not lines:
        raise ValueError(
            f'{work_dir}: expected a number {metric!r} in a '
            '<run>/vis_data/scalars.json, got none; name another key with '
            '--metric')
    line = max(lines, key=lambda line: line[metric]) if best else lines[-1]
    tns, source, definition = _tns(work_dir, pattern, statistic, line)
    return Run(name=work_dir.resolve().name, metric=line[metric], tns=tns,
               source=source, definition=definition)


def _scalars(work_dir: Path) -> Iterator[dict]:
    """What mmengine logged, of all runs in a work dir, in order."""
    for path in sorted(work_dir.glob('*/vis_data/scalars.json')):
        for number, line in enumerate(path.read_bytes().splitlines(), 1):
            yield _object(path, number, line)


def parse_line(line: bytes) -> dict | None:
    """What mmengine logged in a line; None if it is no JSON object.

    A kill may have cut it.
    """
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _object(path: Path, number: int, line: bytes) -> dict:
    if (content := parse_line(line)) is not None:
        return content
    raise ValueError(
        f'{path}: expected a JSON object in each line, got {line[:60]!r} in '
        f'line {number}; delete it, a kill may have cut it')


def _is_number(line: dict, key: str) -> bool:
    return type(line.get(key)) in (int, float)


def _tns(work_dir: Path, pattern: str, statistic: str,
         line: dict) -> tuple[float, str, str | None]:
    """TNS of a run, where it comes from and which definition it follows."""
    found = sorted(work_dir.glob(pattern),
                   key=lambda path: path.stat().st_mtime)
    if found:
        record = read_stiffness_record(found[-1])
        tns = (record.tns_summary()[statistic] if record.finite.any()
               else math.inf)
        return tns, found[-1].name, _conditions(record.header)
    if _is_number(line, key := PREFIX + statistic):
        return line[key], 'scalars.json', None
    raise ValueError(
        f'{work_dir}: expected a record {pattern} or {key} beside the metric, '
        'got neither; make one with tools/analysis/measure_stiffness.py or '
        'train with TNSMetric in val_evaluator')


def _conditions(header: RecordHeader) -> str:
    """What must agree between all records."""
    kind = 'start' if header.meta.get('checkpoint') == 'none' else 'trained'
    return (f'{header.definition}, {kind} network, '
            f'{header.meta.get("dataset", "unknown data")}')
