"""Which few blocks are stiff: the lottery-ticket reading of §3.1."""
import random
import warnings

import torch

from ..stiffness import DEGREES, RecordHeader, StiffnessRecord

#: What records of one network have in common.
SAME = ('definition', 'blocks', 'stage', 'position', 'stages')


def pool_records(records: list[StiffnessRecord],
                 names: list) -> StiffnessRecord:
    """All samples as one record, under the header of the first.

    Args:
        records (list[StiffnessRecord]): at least one.
        names (list): what errors call each, such as its path.

    Raises:
        ValueError: if they are not records of the same blocks.
    """
    first = records[0].header
    for name, record in zip(names, records):
        for key in SAME:
            found, wanted = getattr(record.header, key), getattr(first, key)
            if found != wanted:
                raise ValueError(
                    f'{name}: expected the {key} of {names[0]}, '
                    f'{wanted!r:.200}, got {found!r:.200}; only records of '
                    'one network can be taken together')
    return StiffnessRecord(
        header=first,
        nsi=torch.cat([record.nsi for record in records]),
        step=torch.cat([record.step for record in records]))


def rank_blocks(record: StiffnessRecord, by: str = 'area',
                degree: tuple = DEGREES[0]) -> list[dict]:
    """The measured blocks, the stiffest first; equal ones by mean NSI.

    Args:
        record (StiffnessRecord): at least one sample is finite.
        by (str): ``'area'``, the block's own area of thresholds
            (:func:`block_stiffness`), or ``'mean'``, its mean NSI.
        degree (tuple[float, float]): (M1, M2) of ``stiff``.

    Returns:
        list[dict]: as :func:`summarize_blocks` gives them.
    """
    return sorted(record.summary_by_block(degree),
                  key=lambda row: (-row[by], -row['mean']))


def stiffest_blocks(record: StiffnessRecord, k: int,
                    by: str = 'area') -> list[dict]:
    """The k stiffest of the measured blocks.

    Args:
        record (StiffnessRecord): at least one sample is finite.
        k (int): how many.
        by (str): as in :func:`rank_blocks`.

    Returns:
        list[dict]: the first rows of :func:`rank_blocks`.

    Raises:
        ValueError: if there are not k measured blocks.
    """
    check_block_count(k, record.header)
    rows = rank_blocks(record, by)
    if by == 'area':
        warn_of_no_area(rows, k)
    return rows[:k]


def warn_of_no_area(rows: list[dict], k: int) -> None:
    """Warn where not all of the k first blocks have an own area.

    Args:
        rows (list[dict]): as :func:`rank_blocks` gives them.
        k (int): how many are chosen.
    """
    having = sum(row['area'] > 0 for row in rows)
    if having < k:
        advice = f'choose k <= {having} or --by mean'
        warnings.warn(
            f'k: expected blocks with an own area above 0, got {k} of which '
            f'only {having} have one, the others ranked by mean NSI; '
            f'{advice if having else "choose --by mean"}', stacklevel=3)


def random_blocks(header: RecordHeader, k: int, seed: int) -> list[dict]:
    """k of the measured blocks, drawn at random, beside the stiffest ones.

    Args:
        header (RecordHeader): which blocks were measured.
        k (int): how many. Those of a smaller k are among them.
        seed (int): of the draw; the same one draws the same blocks.

    Returns:
        list[dict]: ``block``, ``stage`` and ``position`` of each.

    Raises:
        ValueError: if there are not k measured blocks.
    """
    check_block_count(k, header)
    columns = zip(header.blocks, header.stage, header.position)
    rows = [dict(zip(('block', 'stage', 'position'), row)) for row in columns]
    random.Random(seed).shuffle(rows)
    return rows[:k]


def check_block_count(k: int, header: RecordHeader, key: str = 'k') -> None:
    """Refuse a number of blocks that cannot be chosen.

    Args:
        k (int): how many are to be chosen.
        header (RecordHeader): which blocks were measured.
        key (str): what an error calls k.

    Raises:
        ValueError: if it is not from 1 to the number of measured blocks.
    """
    if not 1 <= k <= len(header.blocks):
        raise ValueError(f'{key}: expected 1 to {len(header.blocks)}, the '
                         f'measured blocks, got {k}; choose one of these')


def step_blocks(chosen: list[dict], stages: int) -> list[list[int]]:
    """The backbone argument: indices within the stage, a list per stage.

    Args:
        chosen (list[dict]): blocks, as :func:`stiffest_blocks` and
            :func:`random_blocks` give them.
        stages (int): how many stages the network has.
    """
    return [
        sorted(row['position'] for row in chosen if row['stage'] == stage)
        for stage in range(1, stages + 1)
    ]
