"""Measured NSI on disk: one JSON Lines file per model.

The first line is the header, every further one holds the rows of some
samples. A file grows by whole lines only, so a killed measurement loses at
most its last line and goes on from there. ``null`` stands for a value that
is not finite: inf for an NSI, "no known gate" for a step size.
"""
import json
import math
import os
from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor

from .record import RecordHeader, StiffnessRecord

FORMAT = 'stepnet_mm stiffness record 1'
#: An NSI above this is none; sums of squares of less stay finite.
LARGEST = 1e100
#: Keys of ``meta`` that may change while one record is written: a label, a
#: path that ``settings`` stand for, and where it runs.
CIRCUMSTANCES = ('name', 'config', 'date', 'versions', 'machine')


def read_stiffness_record(path, partial: bool = False) -> StiffnessRecord:
    """Read a record.

    Args:
        path (str | Path): the file.
        partial (bool): whether an unfinished one is welcome.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is no record, a line in it is broken, or it is
            unfinished and ``partial`` is not set.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(
            f'{path}: expected a stiffness record, got no such file; make '
            'one with tools/analysis/measure_stiffness.py')
    record = _parse(path, Path(path).read_bytes())
    found, wanted = len(record.nsi), record.header.samples
    if found != wanted and not partial:
        raise ValueError(
            f'{path}: expected {wanted} samples, got {found}, as its '
            'measurement was cut; run the command that wrote it again and it '
            'goes on from there')
    return record


def begin_record(path, header: RecordHeader) -> int:
    """Make a record ready for more rows; none in it is overwritten.

    A last line without its end, which a kill leaves, is cut off.

    Args:
        path (str | Path): the file; it is made if it is not there.
        header (RecordHeader): what is going to be measured.

    Returns:
        int: the number of samples that it has already.

    Raises:
        ValueError: if it is no record, a line in it is broken, or it is that
            of another model or data.
    """
    path = Path(path)
    text = path.read_bytes() if path.exists() else b''
    first = _line(dict(format=FORMAT, **asdict(header)))
    # No whole line, but it starts like a record: a header that a kill cut.
    if b'\n' not in text and first.startswith(text[:len(FORMAT)]):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(first)
        return 0
    record = _parse(path, text)
    _refuse_other(path, header, record.header)
    os.truncate(path, text.rfind(b'\n') + 1)
    return len(record.nsi)


def append_rows(path, first: int, nsi: Tensor, step: Tensor) -> None:
    """Add samples to a record that :func:`begin_record` made ready.

    Args:
        path (str | Path): the file.
        first (int): index of the first of these samples.
        nsi (Tensor): (n, L); nine digits of each number are kept.
        step (Tensor): (n, L), NaN where there is none.
    """
    if len(nsi):
        rows = dict(first=first, nsi=_lists(nsi), step=_lists(step))
        with open(path, 'ab') as file:
            file.write(_line(rows))


def _line(content: dict) -> bytes:
    return json.dumps(content, allow_nan=False).encode() + b'\n'


def _lists(table: Tensor) -> list:
    # Nine digits give back every float32.
    return [[float(f'{v:.9g}') if math.isfinite(v) else None for v in row]
            for row in table.tolist()]


def _parse(path, text: bytes) -> StiffnessRecord:
    """The whole lines of a file as a record."""
    lines = text.split(b'\n')[:-1]
    header = _header(path, lines[0] if lines else text)
    empty = torch.zeros(0, len(header.blocks), dtype=torch.float64)
    nsi, step, count = [empty], [empty], 0
    for number, line in enumerate(lines[1:], 2):
        rows = _rows(path, number, line, header, count)
        nsi.append(rows[0])
        step.append(rows[1])
        count += len(rows[0])
    return StiffnessRecord(header, torch.cat(nsi), torch.cat(step))


def _header(path, line: bytes) -> RecordHeader:
    reason = ''
    try:
        fields = json.loads(line)
        if fields.pop('format') == FORMAT:
            return RecordHeader(**fields)
    except ValueError as error:
        reason = f' ({error})'
    except (KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise ValueError(
        f'{path}: expected a stiffness record, whose first line is its '
        f'header, got {line[:60]!r}{reason}; make one with '
        'tools/analysis/measure_stiffness.py')


def _rows(path, number, line: bytes, header, first: int) -> tuple:
    """NSI and step size of one line, the samples from ``first`` on."""
    try:
        found = json.loads(line)
        nsi = _table(found['nsi'], header, math.inf)
        step = _table(found['step'], header, math.nan)
        if (found['first'] == first and len(nsi) == len(step) > 0
                and first + len(nsi) <= header.samples and _possible(nsi)):
            return nsi, step
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        pass
    raise ValueError(
        f'{path}: expected rows of {header.samples} samples from {first} on '
        f'with an NSI from 0 to {LARGEST:g} for each of '
        f'{len(header.blocks)} blocks, got others in line {number}; delete it '
        'and all lines after it and run the command that wrote the file '
        'again')


def _possible(nsi: Tensor) -> bool:
    return bool(((nsi >= 0) & ((nsi <= LARGEST) | nsi.isinf())).all())


def _table(rows: list, header: RecordHeader, missing: float) -> Tensor:
    table = [[missing if v is None else float(v) for v in row] for row in rows]
    if {len(row) for row in table} != {len(header.blocks)}:
        raise ValueError
    return torch.tensor(table, dtype=torch.float64)


def _refuse_other(path, header: RecordHeader, there: RecordHeader) -> None:
    wanted, found = _identity(header), _identity(there)
    for key in wanted | found:
        if wanted.get(key) != found.get(key):
            raise ValueError(
                f'{path}: expected its {key} to be {wanted.get(key)!r:.200}, '
                f'got {found.get(key)!r:.200} of another measurement; '
                'measure into another file (by --out), or delete this one')


def _identity(header: RecordHeader) -> dict:
    """What must be the same, as JSON gives it back."""
    fields = json.loads(_line(asdict(header)))
    meta = fields.pop('meta')
    if meta.get('sha256'):
        meta.pop('checkpoint', None)  # a path; the digest says which weights
    return {
        **fields,
        **{f'meta.{k}': v
           for k, v in meta.items() if k not in CIRCUMSTANCES}
    }
