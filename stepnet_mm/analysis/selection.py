"""Which few blocks are stiff: the lottery-ticket reading of §3.1."""
import torch

from ..stiffness import DEGREES, StiffnessRecord

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
    """The measured blocks, the stiffest first.

    Args:
        record (StiffnessRecord): at least one sample is finite.
        by (str): ``'area'``, the block's own area of thresholds
            (:func:`block_stiffness`), or ``'mean'``, its mean NSI.
        degree (tuple[float, float]): (M1, M2) of ``stiff``.

    Returns:
        list[dict]: as :func:`summarize_blocks` gives them.
    """
    return sorted(record.summary_by_block(degree), key=lambda row: -row[by])


def step_blocks(chosen: list[dict], stages: int) -> list[list[int]]:
    """The backbone argument: indices within the stage, a list per stage.

    Args:
        chosen (list[dict]): blocks, as :func:`rank_blocks` gives them.
        stages (int): how many stages the network has.
    """
    return [
        sorted(row['position'] for row in chosen if row['stage'] == stage)
        for stage in range(1, stages + 1)
    ]
