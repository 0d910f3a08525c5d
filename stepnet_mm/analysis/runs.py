"""TNS and a metric of training runs, read from what they left on disk."""
import json
import math
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TypedDict

from ..stiffness import DEFINITIONS, RecordHeader, read_stiffness_record
from ..utils.starts import in_order

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
    """The runs of a CSV file with the columns name, tns and metric (pandas).

    Args:
        path (Path): the file, with commas, semicolons or tabs between columns.
        statistic (str): the column of TNS, named as in :func:`read_run`.

    Raises:
        ValueError: if it is no text, or a column is not there or holds no
            numbers.
    """
    import pandas
    try:
        with open(path, encoding='utf-8-sig') as file:
            delimiter = max(',;\t', key=file.readline().count)
        rows = pandas.read_csv(
            path, sep=delimiter, encoding='utf-8-sig', dtype={'name': str},
            usecols=['name', statistic, 'metric'], keep_default_na=False)
        return [
            Run(name=name, tns=tns, metric=metric, source=path.name,
                definition=None)
            for name, tns, metric in zip(
                rows['name'], rows[statistic].astype(float),
                rows['metric'].astype(float))
        ]
    except ValueError as error:
        raise ValueError(
            f'{path}: expected the columns name, {statistic} and metric with '
            f'numbers in the last two, got {error!r}') from None


def read_run(work_dir: Path, metric: str, pattern: str = '*.jsonl',
             best: bool = False, statistic: str = 'tns',
             definition: str | None = None) -> Run:
    """One run: its metric, and TNS from its record or its scalars.

    Args:
        work_dir (Path): of a training run.
        metric (str): the metric's key in ``scalars.json``.
        pattern (str): file name of the records; the newest one of the
            definition is taken. Without a record, TNS is what TNSMetric
            logged beside the metric.
        best (bool): whether the highest value of the metric is taken, in
            place of the last one.
        statistic (str): of TNS over samples, a key of
            :func:`summarize_tns`; the mean of Eq. 5 by default.
        definition (str, optional): of NSI, as in :func:`choose_definition`;
            what was logged does not say its own.

    Raises:
        FileNotFoundError: if there is no such folder.
        ValueError: if it has no such metric or no TNS.
    """
    if not work_dir.is_dir():
        raise FileNotFoundError(f'{work_dir}: expected a work dir, got none')
    lines = _evaluations(work_dir, metric)
    if not lines:
        raise ValueError(
            f'{work_dir}: expected a number {metric!r} in a '
            '<run>/vis_data/scalars.json, got none; name another key with '
            '--metric')
    line = max(lines, key=lambda line: line[metric]) if best else lines[-1]
    tns, source, conditions = _tns(work_dir, pattern, statistic, line,
                                   definition)
    return Run(name=work_dir.resolve().name, metric=line[metric], tns=tns,
               source=source, definition=conditions)


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


def continued(before: list[dict], rows: list[dict]) -> list[dict]:
    """What earlier runs in a work dir logged, and what the next one did.

    Of a resumed training, or one that began anew, that is all up to its first
    step, and then its own.
    """
    first = _step(rows[0], math.inf) if rows else math.inf
    return [row for row in before if _step(row, 0) < first] + rows


def joined(starts: Mapping[Path, list[dict]]) -> list[dict]:
    """What all starts in a work dir logged, each as :func:`continued`.

    Args:
        starts (mapping): a start's file -> what it logged.
    """
    found: list[dict] = []
    for path in in_order({
            path: [row['step'] for row in rows if _is_number(row, 'step')]
            for path, rows in starts.items()}):
        found = continued(found, starts[path])
    return found


def read_stiffness_curve(work_dir, name: str = 'stiffness') -> list[dict]:
    """Read what a ``TNSHook`` wrote into a work dir.

    A resumed run goes on where the one before it stood: of measurements at
    or after its first one, those of earlier runs are dropped.

    Args:
        work_dir (str | Path): a work dir.
        name (str): the hook's ``name``.

    Returns:
        list[dict]: one dict per measurement, in order: ``step``, the
        iteration; ``tns``, ``tns_median``, ``nsi_stage1_mean``, ...,
        ``nonfinite``.

    Raises:
        FileNotFoundError: if no run in it has such a record.
    """
    curves = read_stiffness_curves(work_dir)
    if name not in curves:
        raise FileNotFoundError(
            f'{work_dir}: expected a stiffness record {name!r} in a '
            f'file of <run>/vis_data, got {sorted(curves)}; name one of '
            'these, or train with TNSHook and LocalVisBackend')
    return curves[name]


def read_stiffness_curves(work_dir) -> dict[str, list[dict]]:
    """Read the measurements of every ``TNSHook``, by its name."""
    curves: dict[str, dict[Path, list[dict]]] = {}
    for path in sorted(Path(work_dir).glob('*/vis_data/*.json')):
        if rows := _measurements(path):
            curves.setdefault(path.stem, {})[path] = rows
    return {name: joined(starts) for name, starts in curves.items()}


def _measurements(path: Path) -> list[dict]:
    """What the TNSHook logged that the file is named after."""
    prefix = f'{path.stem}/'
    lines = (parse_line(text) or {} for text in path.read_bytes().splitlines())
    return [{key.removeprefix(prefix): value for key, value in line.items()}
            for line in lines if f'{prefix}nonfinite' in line]


def _step(row: dict, default: float) -> float:
    return row['step'] if _is_number(row, 'step') else default


def _evaluations(work_dir: Path, metric: str) -> list[dict]:
    """What mmengine logged beside a metric, of all runs in a work dir."""
    return joined({
        path: [line for line in _lines(path) if _is_number(line, metric)]
        for path in work_dir.glob('*/vis_data/scalars.json')})


def _lines(path: Path) -> Iterator[dict]:
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


def _tns(work_dir: Path, pattern: str, statistic: str, line: dict,
         definition: str | None) -> tuple[float, str, str | None]:
    """TNS of a run, where it comes from and which definition it follows."""
    found = [*work_dir.glob(pattern)]
    if found:
        path = _newest(found, definition, str(work_dir))
        record = read_stiffness_record(path)
        tns = (record.tns_summary()[statistic] if record.finite.any()
               else math.inf)
        return tns, path.name, _conditions(record.header)
    if _is_number(line, key := PREFIX + statistic) and definition is None:
        return line[key], 'scalars.json', None
    raise ValueError(
        f'{work_dir}: expected a record {pattern} or, without --definition, '
        f'{key} beside the metric, got neither; make one with '
        'tools/analysis/measure_stiffness.py or train with TNSMetric in '
        'val_evaluator')


def _newest(paths: list[Path], wanted: str | None, source: str) -> Path:
    """The newest record of the definition that is read.

    Older files are not looked at: they may be damaged, or of somebody else.
    """
    own: dict[str, Path] = {}
    for path in sorted(paths, key=lambda path: -path.stat().st_mtime):
        name = read_stiffness_record(path, partial=True).header.definition
        own.setdefault(name, path)
        if name == (wanted or DEFINITIONS[0]):
            break
    return own[choose_definition(own, wanted, source)]


def _conditions(header: RecordHeader) -> str:
    """What must agree between all records."""
    kind = 'start' if header.meta.get('checkpoint') == 'none' else 'trained'
    return (f'{header.definition}, {kind} network, '
            f'{header.meta.get("dataset", "unknown data")}')
