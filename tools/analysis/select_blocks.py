#!/usr/bin/env python
"""Which few blocks are stiff: the lottery-ticket reading of §3.1.

python tools/analysis/select_blocks.py RECORD... -k 4

Ranks the measured blocks and prints the step_blocks of the k first ones, to
paste into model.backbone of a config; lottery_configs.py writes such configs.
Several records (seeds) of one network are taken together. A stage's first
block is never measured, so it is never chosen.

own area: mean over samples of the area of the thresholds to which a block by
itself makes a sample stiff, (NSI / mean of its stage - 1)+ x NSI. Own areas
overlap, so they do not add up to TNS (Eq. 5).
of sum, so far: share of the sum of all own areas, of the block and of all
blocks down to it.
stiff: share of the samples in which NSI >= max(mean of its stage (1 + M1),
M2). By default M1 is 0.5, half above its stage, and M2 is 0, no absolute
threshold, since the scale of NSI is the network's own.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

from itertools import accumulate

from block_choice import (
    rank_blocks,
    read_pooled,
    step_blocks,
    warn_of_no_area,
)

from stepnet_mm.utils.command_line import command_parser


def parse_args():
    parser = command_parser(__doc__)
    parser.add_argument(
        'records', nargs='+', help='files of measure_stiffness.py')
    parser.add_argument(
        '-k', type=int, required=True, help='how many blocks to choose')
    parser.add_argument(
        '--by', choices=['area', 'mean'], default='area',
        help='rank by the mean own area or by the mean NSI; default: area')
    parser.add_argument('--m1', type=float, default=.5,
                        help='M1, above which a block is stiff')
    parser.add_argument('--m2', type=float, default=0., help='M2, likewise')
    return parser.parse_args()


def print_ranking(rows: list, k: int, stages: int) -> None:
    """All blocks, a line below the k-th, and these as an argument."""
    total = sum(row['area'] for row in rows)
    shares = [row['area'] / (total or 1.) for row in rows]
    so_far = [*accumulate(shares)]
    width = max(len(row['block']) for row in rows)
    print(f'rank  {"block":<{width}}  stage  index  mean NSI  own area  '
          'of sum  so far  stiff')
    for rank, (row, share, above) in enumerate(zip(rows, shares, so_far), 1):
        print(f'{rank:4d}  {row["block"]:<{width}}  {row["stage"]:5d}  '
              f'{row["position"]:5d}  {row["mean"]:8.4g}  {row["area"]:8.4g}  '
              f'{share:6.1%}  {above:6.1%} {row["stiff"]:6.1%}')
        if rank == k < len(rows):
            print('-' * (width + 60))
    print(f'The first {k} of {len(rows)} measured blocks have '
          f'{so_far[k - 1]:.1%} of the sum of all own areas.' if total else
          'No block is above the mean of its stage: all own areas are 0.')
    print(f'step_blocks={step_blocks(rows[:k], stages)}')


def main():
    args = parse_args()
    record = read_pooled(args.records, [args.k])
    mean, median, high = record.tns_summary().values()
    print(f'{len(record.nsi) - record.lost} samples of '
          f'{len(args.records)} records, '
          f'{record.lost} more are not finite and left out; '
          f'definition {record.header.definition}; TNS {mean:.4g} (median '
          f'{median:.4g}, 95 % quantile {high:.4g}); '
          f'stiff: M1 {args.m1:g}, M2 {args.m2:g}')
    rows = rank_blocks(record, args.by, (args.m1, args.m2))
    print_ranking(rows, args.k, record.header.stages)
    if args.by == 'area':
        warn_of_no_area(rows, args.k)


if __name__ == '__main__':
    main()
