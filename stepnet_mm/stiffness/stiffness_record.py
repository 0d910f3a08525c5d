"""The NSI of one network in memory, and on disk as JSON Lines.

The first line of a file is the header; each further line has the rows of some
samples. A killed measurement loses at most its last line and continues from
there. ``null`` is a number that is not finite:
inf for an NSI, "no known gate" for a step size.
"""
import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import Tensor

from ..json_lines import end_last_line, read_lines
from .summary import DEGREE, summarize_stiffness, summarize_tns
from .tns import block_stiffness, stiff_blocks, total_neural_stiffness

#: NSI of the residual (Eq. 4), of the block's output, or of the residual with
#: its step size (docs/stiffness.md).
DEFINITIONS = ('residual', 'output', 'update')
FORMAT = 'stepnet_mm stiffness record 1'
WANTED = 'a stiffness record, its header and then rows,'
ADVICE = ('delete that line and all later ones, and run the command that '
          'wrote the file again')
#: Keys of ``meta`` that may differ when a measurement continues.
CHANGEABLE = ('name', 'config', 'date', 'versions', 'machine')


@dataclass
class RecordHeader:
    """Blocks, samples and origin of a record.

    Attributes:
        definition (str): of NSI, one of ``DEFINITIONS``.
        blocks (list[str]): names of the L measured blocks.
        stage (list[int]): the stage of each, from 1.
        position (list[int]): the index of each in its stage, from 0.
        samples (int): number of samples of the complete record.
        meta (dict): origin: config, checkpoint, dataset, ...
        stages (int): number of stages of the network; left out, the highest
            measured one.

    Raises:
        ValueError: if these do not fit each other.
    """
    definition: str
    blocks: list[str]
    stage: list[int]
    position: list[int]
    samples: int
    meta: dict[str, Any] = field(default_factory=dict)
    stages: int = 0

    def __post_init__(self):
        highest = max(self.stage, default=0)
        self.stages = self.stages or highest
        numbers = [*self.stage, *self.position, self.samples, self.stages]
        if not (self.definition in DEFINITIONS
                and len(self.blocks) == len(self.stage) == len(self.position)
                and isinstance(self.meta, dict)
                and all(isinstance(name, str) for name in self.blocks)
                and all(type(n) is int and n >= 0 for n in numbers)
                and 0 < min(self.stage, default=0) <= highest <= self.stages):
            raise ValueError(
                f'header: expected a definition of {DEFINITIONS}, a name, a '
                'stage from 1 to stages and a position from 0 for each of at '
                'least one block, a count of samples, and a dict, got '
                f'{self!r:.400}; make the record again')

    @classmethod
    def of(cls, recorder, samples: int, **meta) -> 'RecordHeader':
        """The header of a :class:`TrajectoryRecorder`'s measurement."""
        return cls(
            definition=recorder.definition, blocks=recorder.blocks,
            stage=recorder.stage.tolist(),
            position=recorder.position.tolist(), samples=samples, meta=meta,
            stages=max(block.stage for block in recorder.found))


@dataclass
class StiffnessRecord:
    """NSI of N samples at L blocks.

    Attributes:
        header (RecordHeader): blocks, samples and origin.
        nsi (Tensor): (N, L), float64, Eq. 4; inf where it is not finite.
        step (Tensor): (N, L), float64, the mean Δt over channels and space;
            NaN where a block has no known gate.
    """
    header: RecordHeader
    nsi: Tensor
    step: Tensor

    @property
    def stage(self) -> Tensor:
        """(L,), the stage of every column, from 1."""
        return torch.tensor(self.header.stage)

    @property
    def name(self) -> str:
        """The label in figures."""
        return str(self.header.meta.get('name', 'model'))

    @property
    def finite(self) -> Tensor:
        """(N,), bool: the samples whose NSI is finite in every block."""
        return torch.isfinite(self.nsi).all(1)

    @property
    def finite_nsi(self) -> Tensor:
        """(n, L), NSI of the finite samples."""
        return self.nsi[self.finite]

    @property
    def nonfinite(self) -> int:
        """Number of samples that are not finite, excluded everywhere."""
        return int((~self.finite).sum())

    def tns(self) -> Tensor:
        """TNS of the finite samples (Eq. 5), (n,), float64."""
        tns = total_neural_stiffness(self.nsi, self.stage)
        return tns[tns.isfinite()]

    def summary(self) -> dict[str, float]:
        """As :func:`summarize_stiffness`, without the means by block."""
        return summarize_stiffness(self.nsi, self.stage)

    def tns_summary(self) -> dict[str, float]:
        """As :func:`summarize_tns`, over the finite samples."""
        return summarize_tns(self.tns())

    def summary_by_block(self) -> list[dict]:
        """The numbers of each block, over the finite samples (at least one).

        Returns:
            list[dict]: ``block``, ``stage`` and ``position``; ``mean``, the
            mean NSI; ``area``, the mean of :func:`block_stiffness`;
            ``stiff``, the share of samples that are stiff to
            ``DEGREE``; ``step``, the mean Δt, NaN without a known gate.
        """
        header, nsi, stage = self.header, self.finite_nsi, self.stage
        columns = dict(
            block=header.blocks, stage=header.stage, position=header.position,
            mean=nsi.mean(0).tolist(),
            area=block_stiffness(nsi, stage).mean(0).tolist(),
            stiff=stiff_blocks(nsi, stage, *DEGREE).double().mean(0).tolist(),
            step=self.step[self.finite].nanmean(0).tolist())
        return [dict(zip(columns, row)) for row in zip(*columns.values())]


def labels(records: list[StiffnessRecord]) -> list[str]:
    """The records' names, numbered where several are equal."""
    names = [record.name for record in records]
    return [name if names.count(name) == 1
            else f'{name} ({names[:i].count(name)})'
            for i, name in enumerate(names, 1)]


def read_stiffness_record(path, partial: bool = False) -> StiffnessRecord:
    """Read a record; with ``partial`` an unfinished one, too.

    Raises:
        ValueError: if it is no record, a line is damaged, or it is unfinished
            and ``partial`` is not set.
    """
    with open(path, 'rb') as file:
        record = _read(file)
    if record is None:
        raise ValueError(f'{path}: expected {WANTED} got none; run the '
                         'command that wrote the file again')
    found, wanted = len(record.nsi), record.header.samples
    if found != wanted and not partial:
        raise ValueError(
            f'{path}: expected {wanted} samples, got {found}, as its '
            'measurement was cut; run the command that wrote it again, to '
            'continue it')
    return record


def begin_record(path, header: RecordHeader) -> int:
    """Prepare a record for more rows; no whole line of it is lost.

    A missing file is made. Returns the number of samples that it already has.

    Raises:
        ValueError: if it is no record, a line is damaged, or it is the record
            of another model or other data.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with open(path, 'a+b') as file:
        record = _read(file)
        if record is not None:
            _refuse_other(path, header, record.header)
        end_last_line(file)
        if record is None:
            file.write(_line(dict(format=FORMAT, **asdict(header))))
    return len(record.nsi) if record else 0


def append_rows(path, first: int, nsi: Tensor, step: Tensor) -> None:
    """Add samples to a record that :func:`begin_record` prepared.

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


def _read(file: BinaryIO) -> StiffnessRecord | None:
    """The whole lines of a file as a record; None if it has none."""
    headers: list[RecordHeader] = []
    tables: list[tuple[Tensor, Tensor]] = []

    def parse(_, fields: dict) -> None:
        if headers:
            first = sum(len(nsi) for nsi, _ in tables)
            tables.append(_rows(fields, headers[0], first))
        elif fields.pop('format') != FORMAT:
            raise ValueError('another format')
        else:
            headers.append(RecordHeader(**fields))
            tables.append((empty := torch.zeros(
                0, len(headers[0].blocks), dtype=torch.float64), empty))

    read_lines(file, parse, WANTED, ADVICE)
    return StiffnessRecord(headers[0], *map(torch.cat, zip(*tables))
                           ) if headers else None


def _rows(found: dict, header: RecordHeader, first: int) -> tuple:
    """NSI and step size of one line, the samples from ``first`` on."""
    # A null becomes NaN.
    nsi, step = (np.array(found[key], float) for key in ('nsi', 'step'))
    nsi[np.isnan(nsi)] = np.inf
    if not (found['first'] == first
            and nsi.shape == step.shape == (len(nsi), len(header.blocks))
            and 0 < len(nsi) <= header.samples - first
            and (nsi >= 0).all()):
        raise ValueError(
            f'not rows of {header.samples} samples from {first} on with an '
            f'NSI from 0 on for each of {len(header.blocks)} blocks')
    return torch.from_numpy(nsi), torch.from_numpy(step)


def _refuse_other(path, header: RecordHeader, there: RecordHeader) -> None:
    wanted, found = _identity(header), _identity(there)
    for key in wanted | found:
        if wanted.get(key) != found.get(key):
            raise ValueError(
                f'{path}: expected its {key} to be {wanted.get(key)!r:.200}, '
                f'got {found.get(key)!r:.200} of another measurement; '
                'measure into another file (by --out), or delete this one')


def _identity(header: RecordHeader) -> dict:
    """The part that must be equal, as read from JSON."""
    fields = json.loads(_line(asdict(header)))
    meta = fields.pop('meta')
    if meta.get('sha256'):
        meta.pop('checkpoint', None)  # a path; the digest says which weights
    for key, value in meta.items():
        if key not in CHANGEABLE:
            fields[f'meta.{key}'] = value
    return fields
