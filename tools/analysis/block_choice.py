"""Which few blocks are stiff: the lottery-ticket reading of §3.1."""
import random
import warnings
from collections.abc import Sequence

import torch

from stepnet_mm.stiffness import (
    DEGREES,
    RecordHeader,
    StiffnessRecord,
    read_stiffness_record,
)

#: What records of one network have in common.
SAME = ('definition', 'blocks', 'stage', 'position', 'stages')


def read_pooled(paths: Sequence[str], counts: Sequence[int]
                ) -> StiffnessRecord:
    """All samples of several records, under the header of the first.

    Args:
        paths (sequence[str]): of records of one network.
        counts (sequence[int]): how many blocks are to be chosen, ``-k``.

    Raises:
        ValueError: if they are not records of the same blocks, no sample is
            finite, or a count is not from 1 to that of the measured blocks.
    """
    records = [read_stiffness_record(path) for path in paths]
    first = records[0].header
    for path, record in zip(paths, records):
        for key in SAME:
            found, wanted = getattr(record.header, key), getattr(first, key)
            if found != wanted:
                raise ValueError(
                    f'{path}: expected the {key} of {paths[0]}, '
                    f'{wanted!r:.200}, got {found!r:.200}; only records of '
                    'one network can be taken together')
    for k in counts:
        if not 1 <= k <= len(first.blocks):
            raise ValueError(f'-k: expected 1 to {len(first.blocks)}, the '
                             f'measured blocks, got {k}; choose one of these')
    pooled = StiffnessRecord(
        header=first,
        nsi=torch.cat([record.nsi for record in records]),
        step=torch.cat([record.step for record in records]))
    if not pooled.finite.any():
        raise ValueError(
            f'{paths[0]}: expected a sample with a finite NSI everywhere, got '
            f'none in {len(pooled.nsi)}; measure a network that does not '
            'diverge')
    return pooled


def rank_blocks(record: StiffnessRecord, by: str = 'area',
                degree: tuple = DEGREES[0]) -> list[dict]:
    """The measured blocks, the stiffest first; equal ones by mean NSI.

    Args:
        record (StiffnessRecord): at least one sample is finite.
        by (str): ``'area'``, the block's own area of thresholds
            (:func:`block_stiffness`), or ``'mean'``, its mean NSI.
        degree (tuple[float, float]): (M1, M2) of ``stiff``.

    Returns:
        list[dict]: as :meth:`StiffnessRecord.summary_by_block` gives them.
    """
    return sorted(record.summary_by_block(degree),
                  key=lambda row: (-row[by], -row['mean']))


def warn_of_no_area(rows: list[dict], k: int) -> None:
    """Warn where not all of the k first blocks have an own area.

    Args:
        rows (list[dict]): from :func:`rank_blocks`.
        k (int): how many are chosen.
    """
    having = sum(row['area'] > 0 for row in rows)
    if having < k:
        warnings.warn(
            f'k: expected blocks with an own area above 0, got {k} of which '
            f'only {having} have one, the others ranked by mean NSI; choose '
            f'k <= {having} or --by mean', stacklevel=2)


def random_blocks(header: RecordHeader, k: int, seed: int) -> list[dict]:
    """``block``, ``stage`` and ``position`` of k random measured blocks.

    A seed draws the same blocks again, and for a smaller k some of them.
    """
    columns = zip(header.blocks, header.stage, header.position)
    rows = [dict(zip(('block', 'stage', 'position'), row)) for row in columns]
    random.Random(seed).shuffle(rows)
    return rows[:k]


def step_blocks(chosen: list[dict], stages: int) -> list[list[int]]:
    """The backbone argument: indices within the stage, a list per stage.

    Args:
        chosen (list[dict]): from :func:`rank_blocks` or
            :func:`random_blocks`.
        stages (int): how many stages the network has.
    """
    return [
        sorted(row['position'] for row in chosen if row['stage'] == stage)
        for stage in range(1, stages + 1)
    ]
