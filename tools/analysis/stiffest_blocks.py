#!/usr/bin/env python
"""Which blocks are stiff, and step_blocks of the few stiffest: LTH4SA, §3.1.

python tools/analysis/stiffest_blocks.py RECORD... -k 9 18 --random-seeds 0 1

From stiffness records of one network; several seeds are taken together. Ranks
the measured blocks and prints, for each k, the step_blocks of the k first
ones and of k random ones, a control; a smaller k takes some of the blocks of
a greater one. They go into model.backbone of a config, or as
'model.backbone.step_blocks' into the options of a study
(configs/studies/cifar10_16px_tickets.py). A stage's first block is never
measured, so it is never chosen. Take the records of a trained network of the
config's own layout and data.

own area: mean over samples of the area of the thresholds to which a block by
itself makes a sample stiff, (NSI / mean of its stage - 1)+ x NSI. Own areas
overlap, so they do not add up to TNS (Eq. 5).
so far: share of the block, and of all above it, in the sum of own areas.
stiff: share of the samples in which NSI is at least 1.5 x the mean of its
stage.
"""
import stepnet_mm.utils.interrupts  # Ctrl-C from here on

import random
from itertools import accumulate

import torch

from stepnet_mm.stiffness import StiffnessRecord, read_stiffness_record
from stepnet_mm.utils.command_line import aligned, command_parser
from stepnet_mm.visualization import check_records


def parse_args():
    parser = command_parser(__doc__)
    parser.add_argument(
        'records', nargs='+', help='files of measure_stiffness.py')
    parser.add_argument(
        '-k', nargs='+', type=int, required=True,
        help='how many blocks to choose')
    parser.add_argument(
        '--random-seeds', nargs='+', type=int, default=[], metavar='SEED',
        help='of the random choices; default: none is drawn')
    return parser.parse_args()


def read_pooled(paths):
    """All samples of several records, under the header of the first.

    Raises:
        ValueError: if they are not of the same blocks and definition, or one
            has no finite sample.
    """
    records = [*map(read_stiffness_record, paths)]
    check_records(records)
    first = records[0]
    for path, other in zip(paths, records):
        if other.header.blocks != first.header.blocks:
            raise ValueError(
                f'{path}: expected the blocks of {paths[0]}, '
                f'{first.header.blocks!r:.200}, got '
                f'{other.header.blocks!r:.200}; name records of one network')
    return StiffnessRecord(
        first.header, nsi=torch.cat([record.nsi for record in records]),
        step=torch.cat([record.step for record in records]))


def rank_blocks(record):
    """The measured blocks by own area, the largest first, then by mean NSI."""
    return sorted(record.summary_by_block(),
                  key=lambda row: (-row['area'], -row['mean']))


def random_blocks(record, seed):
    """The measured blocks in a random order, for a seed always the same."""
    rows = record.summary_by_block()
    random.Random(seed).shuffle(rows)
    return rows


def step_blocks(chosen, stages):
    """The backbone argument: indices within the stage, a list per stage."""
    return [sorted(row['position'] for row in chosen if row['stage'] == stage)
            for stage in range(1, stages + 1)]


def table(rows, k):
    """All blocks, with a line below the k-th."""
    so_far = [*accumulate(row['area'] for row in rows)]
    head, *lines = aligned([
        ('block', 'stage', 'index', 'mean NSI', 'own area', 'so far', 'stiff'),
        *((row['block'], str(row['stage']), str(row['position']),
           f'{row["mean"]:.4g}', f'{row["area"]:.4g}',
           f'{area / (so_far[-1] or 1):.1%}', f'{row["stiff"]:.1%}')
          for row, area in zip(rows, so_far))]).splitlines()
    return '\n'.join([head, *lines[:k], '-' * len(head), *lines[k:]])


def main():
    args = parse_args()
    record = read_pooled(args.records)
    header, rows = record.header, rank_blocks(record)
    for k in args.k:
        if not 1 <= k <= len(rows):
            raise ValueError(f'-k: expected 1 to {len(rows)}, the measured '
                             f'blocks, got {k}; choose one of these')
    print(f'{len(record.nsi)} samples, {record.nonfinite} of them not finite '
          f'and left out; definition {header.definition}')
    print(', '.join(f'{key} {value:.4g}'
                    for key, value in record.tns_summary().items()))
    for k in args.k:
        print(table(rows, k))
        print(f'step_blocks={step_blocks(rows[:k], header.stages)}')
        for seed in args.random_seeds:
            drawn = step_blocks(random_blocks(record, seed)[:k], header.stages)
            print(f'{k} random ones, seed {seed}: step_blocks={drawn}')


if __name__ == '__main__':
    main()
