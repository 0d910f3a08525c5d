"""Measured NSI of one network, and what is computed from it."""
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from .summary import (
    DEGREES,
    summarize_blocks,
    summarize_stiffness,
    summarize_tns,
)
from .tns import total_neural_stiffness

#: How NSI may be taken: of the residual by Eq. 4, of the block's output, or of
#: the residual with its step size (docs/stiffness.md).
DEFINITIONS = ('residual', 'output', 'update')


@dataclass
class RecordHeader:
    """What was measured, on what; two records of one model share it.

    Attributes:
        definition (str): of NSI, one of ``DEFINITIONS``.
        blocks (list[str]): names of the L measured blocks.
        stage (list[int]): the stage of each, from 1.
        position (list[int]): the index of each in its stage, from 0.
        samples (int): how many samples the whole record has.
        meta (dict): where it comes from: config, checkpoint, dataset, ...
        stages (int): how many stages the network has; left out, the highest
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
        self._check_texts()
        highest = max(self.stage, default=0)
        self.stages = self.stages or highest
        lengths = [len(self.blocks), len(self.stage), len(self.position)]
        numbers = [*self.stage, *self.position, self.samples, self.stages]
        if not (lengths == [lengths[0]] * 3 and highest > 0
                and all(type(n) is int and n >= 0 for n in numbers)
                and min(self.stage) > 0 and self.stages >= highest):
            raise ValueError(
                'blocks, stage, position, samples: expected a name, a stage '
                'from 1 to stages and a position from 0 for each of at least '
                f'one block, and a count of samples, got {lengths} of them '
                f'in {self.stages} stages and {self.samples} samples')

    def _check_texts(self):
        if self.definition not in DEFINITIONS:
            raise ValueError(f'definition: expected one of {DEFINITIONS}, got '
                             f'{self.definition!r:.60}; make the record again')
        for key, kind, value in (('meta', dict, self.meta),
                                 *(('blocks', str, b) for b in self.blocks)):
            if not isinstance(value, kind):
                wanted = 'an object' if kind is dict else 'text'
                raise ValueError(f'{key}: expected {wanted}, got '
                                 f'{value!r:.60}; make the record again')

    @classmethod
    def of(cls, recorder, samples: int, **meta) -> 'RecordHeader':
        """The header of what a recorder measures.

        Args:
            recorder (TrajectoryRecorder): says which blocks, and how.
            samples (int): how many samples the whole record has.
            meta: where it comes from, such as ``name``.
        """
        return cls(
            definition=recorder.definition,
            blocks=recorder.blocks,
            stage=recorder.stage.tolist(),
            position=recorder.position.tolist(),
            samples=samples,
            meta=meta,
            stages=max(block.stage for block in recorder.found))


@dataclass
class StiffnessRecord:
    """NSI of N samples at L blocks.

    Attributes:
        header (RecordHeader): what was measured.
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
        """What figures call it."""
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
    def lost(self) -> int:
        """How many samples are not finite, and left out of all numbers."""
        return int((~self.finite).sum())

    def tns(self) -> Tensor:
        """TNS of the finite samples (Eq. 5), (n,), float64."""
        tns = total_neural_stiffness(self.nsi, self.stage)
        return tns[tns.isfinite()]

    def summary(self, degrees: Sequence = DEGREES) -> dict[str, float]:
        """As :func:`summarize_stiffness`, without the means by block."""
        return summarize_stiffness(self.nsi, self.stage, degrees=degrees)

    def tns_summary(self) -> dict[str, float]:
        """As :func:`summarize_tns`, over the finite samples."""
        return summarize_tns(self.tns())

    def summary_by_block(self, degree: tuple = DEGREES[0]) -> list[dict]:
        """As :func:`summarize_blocks`."""
        return summarize_blocks(self, degree)

    def renamed(self, name: str) -> 'StiffnessRecord':
        """The same record under another name; the rows are shared."""
        header = replace(self.header, meta={**self.header.meta, 'name': name})
        return replace(self, header=header)


def labels(records: list[StiffnessRecord]) -> list[str]:
    """The records' names; those that several have get a number too."""
    names = [record.name for record in records]
    total, found = Counter(names), []
    sofar: Counter[str] = Counter()
    for name in names:
        sofar[name] += 1
        several = total[name] > 1
        found.append(f'{name} ({sofar[name]})' if several else name)
    return found
