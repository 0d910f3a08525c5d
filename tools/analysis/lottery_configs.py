#!/usr/bin/env python
r"""Few stiff blocks, and configs with steps in them: LTH4SA, §3.1.

python tools/analysis/lottery_configs.py RECORD... -k 4
python tools/analysis/lottery_configs.py RECORD... -k 9 18 \
  --configs configs/resnet164/resnet164_{stepnet,se}_cifar10.py \
  --random-seeds 0 1 2 --out work_dirs/lth4sa --study tickets.py
bash tools/study.sh work_dirs/lth4sa/tickets.py

From stiffness records of one network; several seeds are taken together. The
first command ranks the measured blocks and prints the step_blocks of the k
first ones, to paste into model.backbone of a config. A stage's first block is
never measured, so it is never chosen.

own area: mean over samples of the area of the thresholds to which a block by
itself makes a sample stiff, (NSI / mean of its stage - 1)+ x NSI. Own areas
overlap, so they do not add up to TNS (Eq. 5).
so far: share of the block, and of all above it, in the sum of own areas.
stiff: share of the samples in which NSI is at least 1.5 x the mean of its
stage.

The second command writes configs that inherit --configs, which differ in the
step alone. They are trained by tools/train.py, or all with several --seeds by
tools/study.sh and the study file that --study names:

CONFIG_stiffestK      steps in the K stiffest of the measured blocks
CONFIG_randomK_drawN  in K of the same blocks, drawn with seed N; a smaller K
                      takes some of the blocks of a greater one
CONFIG_all            in the blocks in which CONFIG has them
CONFIG_none           in no block; of the first config alone

Records are compared with the configs by names and indices of blocks alone:
take those of a trained network of the configs' own layout and data. Of a run
of a study, --configs takes WORK_DIR/configs/METHOD_seedN.py, which has the
study's options in it.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import random
import re
import shlex
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from pprint import pformat

import torch
from mmengine.config import Config

from stepnet_mm import stiffness
from stepnet_mm.config.conversion import find_config, inherit
from stepnet_mm.launch.entry import build_model
from stepnet_mm.models import StepBackbone
from stepnet_mm.stiffness import StiffnessRecord
from stepnet_mm.utils import command_line
from stepnet_mm.utils.files import file_digest, write_new


def parse_args():
    parser = command_line.command_parser(__doc__)
    parser.add_argument(
        'records', nargs='+', help='files of measure_stiffness.py')
    parser.add_argument(
        '-k', nargs='+', type=int, required=True,
        help='how many blocks to choose')
    parser.add_argument(
        '--configs', nargs='+', metavar='CONFIG',
        help='of one network, with a step, such as StepNet and SE')
    parser.add_argument(
        '--out', type=command_line.output_folder, default='work_dirs/lth4sa',
        help='folder of the new configs; default: work_dirs/lth4sa')
    parser.add_argument(
        '--random-seeds', nargs='+', type=int, default=[0], metavar='SEED',
        help='of the random choices; default: 0')
    parser.add_argument(
        '--study', metavar='NAME.py',
        help='write a study file of all of them too, into --out')
    parser.add_argument(
        '--seeds', nargs='+', type=int, default=[0, 1, 2], metavar='SEED',
        help='of the runs of --study; default: 0 1 2')
    args = parser.parse_args()
    if args.study and not (args.configs and re.fullmatch(
            r'\w+\.py', args.study)):
        parser.error('--study: expected NAME.py beside --configs, got '
                     f'{args.study!r}; it is written into --out')
    return args


def read_pooled(paths: Sequence[str]) -> StiffnessRecord:
    """All samples of several records, under the header of the first.

    Raises:
        ValueError: if they are not records of the same blocks, or no sample
            is finite.
    """
    records = [stiffness.read_stiffness_record(path) for path in paths]
    header, *others = (replace(record.header, samples=0, meta={})
                       for record in records)
    for path, other in zip(paths[1:], others):
        if other != header:
            raise ValueError(
                f'{path}: expected definition and blocks of {paths[0]}, '
                f'{header!r:.400}, got {other!r:.400}; name records of one '
                'network')
    pooled = StiffnessRecord(
        records[0].header, nsi=torch.cat([record.nsi for record in records]),
        step=torch.cat([record.step for record in records]))
    if not pooled.finite.any():
        raise ValueError(
            f'{paths[0]}: expected a sample with a finite NSI everywhere, got '
            f'none in {len(pooled.nsi)}; measure a network that does not '
            'diverge')
    return pooled


def rank_blocks(record: StiffnessRecord, k: int) -> list[dict]:
    """The measured blocks by own area, the largest first.

    Equal ones are ranked by mean NSI; warns if some of the k first blocks
    have no own area (:func:`block_stiffness`).

    Args:
        record (StiffnessRecord): at least one sample is finite.
        k (int): how many are to be chosen.

    Returns:
        list[dict]: as :meth:`StiffnessRecord.summary_by_block` gives them.

    Raises:
        ValueError: if k is not from 1 to the number of blocks.
    """
    rows = sorted(record.summary_by_block(),
                  key=lambda row: (-row['area'], -row['mean']))
    if not 1 <= k <= len(rows):
        raise ValueError(f'-k: expected 1 to {len(rows)}, the measured '
                         f'blocks, got {k}; choose one of these')
    having = sum(row['area'] > 0 for row in rows)
    if having < k:
        warnings.warn(
            f'-k: expected blocks with an own area above 0, got {k} of which '
            f'only {having} have one, the others ranked by mean NSI; choose '
            f'{having} or less', stacklevel=2)
    return rows


def random_blocks(record: StiffnessRecord, k: int, seed: int) -> list[dict]:
    """k random measured blocks, as :func:`rank_blocks` gives them.

    A seed draws the same blocks again, and for a smaller k some of them.
    """
    rows = record.summary_by_block()
    random.Random(seed).shuffle(rows)
    return rows[:k]


def step_blocks(chosen: list[dict], stages: int) -> list[list[int]]:
    """The backbone argument: indices within the stage, a list per stage.

    Args:
        chosen (list[dict]): from :func:`rank_blocks` or
            :func:`random_blocks`.
        stages (int): how many stages the network has.
    """
    return [sorted(row['position'] for row in chosen if row['stage'] == stage)
            for stage in range(1, stages + 1)]


def table(rows: list[dict], k: int) -> str:
    """All blocks, with a line below the k-th."""
    so_far = [*accumulate(row['area'] for row in rows)]
    head, *lines = command_line.aligned([
        ('block', 'stage', 'index', 'mean NSI', 'own area', 'so far', 'stiff'),
        *((row['block'], str(row['stage']), str(row['position']),
           f'{row["mean"]:.4g}', f'{row["area"]:.4g}',
           f'{area / (so_far[-1] or 1):.1%}', f'{row["stiff"]:.1%}')
          for row, area in zip(rows, so_far))]).splitlines()
    return '\n'.join([head, *lines[:k], '-' * len(head), *lines[k:]])


def backbone_of(path: Path, record) -> tuple[str, ...]:
    """Keys of the backbone of a config, from ``'model'`` on.

    Raises:
        ValueError: if it has not one backbone that takes step_blocks, or
            other blocks than the record.
    """
    found = [(key, module) for key, module in build_model(
        Config.fromfile(path), start=False).named_modules()
        if isinstance(module, StepBackbone) and None not in (
            module.step if isinstance(module.step, list | tuple)
            else [module.step])]
    if len(found) != 1:
        raise ValueError(
            f'{path}: expected one backbone that takes step_blocks, with a '
            f'step in every stage, got {len(found)}; name a config with the '
            'step, such as StepNet or SE, or convert it by '
            'tools/to_stepnet.py')
    (key, backbone), = found
    blocks = [(f'{key}.{layer}.{i}', stage, i)
              for stage, layer in enumerate(backbone.res_layers, 1)
              for i in range(1, len(getattr(backbone, layer)))]
    header = record.header
    measured = [*zip(header.blocks, header.stage, header.position)]
    if (measured, header.stages) != (blocks, len(backbone.res_layers)):
        raise ValueError(
            f'{path}: expected the {len(measured)} blocks of the record, '
            f'{measured!r:.200}, got {len(blocks)}, {blocks!r:.200}; name '
            'another config, or measure its network, without --blocks')
    return 'model', *key.split('.')


def choices(args, record) -> dict[str, tuple[str, dict]]:
    """End of a file's name -> where its steps are, and what it changes."""
    stages = record.header.stages
    of = f'of {len(record.header.blocks)} measured blocks'
    found = dict(none=('in no block', dict(step=None)),
                 all=('where it has them', {}))
    for k in args.k:
        stiffest = rank_blocks(record, k)[:k]
        found[f'stiffest{k}'] = (
            f'in the {k} stiffest {of}, by area',
            dict(step_blocks=step_blocks(stiffest, stages)))
        for seed in args.random_seeds:
            drawn = random_blocks(record, k, seed)
            found[f'random{k}_draw{seed}'] = (
                f'in {k} {of}, drawn with seed {seed}',
                dict(step_blocks=step_blocks(drawn, stages)))
    return found


def describe_record(path: str) -> str:
    """A comment, on one line: which file, of which config."""
    meta = stiffness.read_stiffness_record(path).header.meta
    return (f'# Record: {path} (sha256 {file_digest(path)}), config '
            f'{meta.get("config")!r}')


def write_all(args, record) -> None:
    """Write the new configs and the study; no file is overwritten."""
    backbones = {path: backbone_of(path, record)
                 for path in map(find_config, args.configs)}
    origin = [*map(describe_record, args.records),
              f'# Command: {shlex.join(["python", *sys.argv])}']
    methods: dict[str, dict] = {}
    for end, (where, changes) in choices(args, record).items():
        paths = [*backbones][:1 if end == 'none' else None]
        for path in paths:
            name = f'{path.stem}_{end}'
            method = (end if len(paths) == 1
                      else re.sub(r'\W|_seed', '_', name))
            methods[method] = dict(config=f'{name}.py')
            write(args.out / f'{name}.py', [
                f'# {path.stem} with steps {where} (LTH4SA, §3.1).',
                *origin,
                *inherit(path, args.out.absolute(),
                         {backbones[path]: changes} if changes else {})])
    if args.study:
        measure = dict(num_samples=2000, definitions=[*stiffness.DEFINITIONS])
        write(args.out / args.study, [
            '"""LTH4SA (§3.1): steps in no, in all and in few blocks."""',
            *origin,
            f'methods = {pformat(methods, sort_dicts=False)}',
            f'seeds = {args.seeds}',
            f'measure = {measure}'])


def write(path: Path, lines: list[str]) -> None:
    write_new(path, '\n'.join([*lines, '']))
    print(path)


def print_ranking(args, record) -> None:
    """The table and the step_blocks of each k."""
    header = record.header
    print(f'{len(record.nsi)} samples, {record.lost} of them not finite and '
          f'left out; definition {header.definition}')
    print(', '.join(f'{key} {value:.4g}'
                    for key, value in record.tns_summary().items()))
    for k in args.k:
        rows = rank_blocks(record, k)
        print(table(rows, k))
        print(f'step_blocks={step_blocks(rows[:k], header.stages)}')


def main():
    args = parse_args()
    record = read_pooled(args.records)
    if args.configs:
        write_all(args, record)
    else:
        print_ranking(args, record)


if __name__ == '__main__':
    main()
