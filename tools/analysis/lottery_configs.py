#!/usr/bin/env python
r"""Configs with steps in a few blocks: the lottery-ticket reading of §3.1.

python tools/analysis/lottery_configs.py RECORD... -k 9 18 \
  --configs configs/resnet164/resnet164_{stepnet,se}_cifar10.py \
  --random-seeds 0 1 2 --out work_dirs/lth4sa --study tickets.py
bash tools/study.sh work_dirs/lth4sa/tickets.py

From stiffness records of one network (several seeds are taken together) and
configs of that network with a step. Each new config inherits one of --configs
and is trained by tools/train.py, or all with several --seeds by
tools/study.sh and the study file that --study names:

CONFIG_stiffestK      steps in the K stiffest of the measured blocks, as
                      select_blocks.py ranks them
CONFIG_randomK_drawN  in K of the same blocks, drawn with seed N; a smaller K
                      takes some of the blocks of a greater one
CONFIG_all            in the blocks in which CONFIG has them
CONFIG_none           in no block; once for configs that differ in the step

Records are compared with the configs by names and indices of blocks alone, so
one of another data set, step or layout (preact) may fit: take that of a
trained network of the configs' own layout and data, with steps in all blocks,
as in the paper's measurements, or plain. The new files name its config. Of a
run of a study, --configs takes WORK_DIR/configs/METHOD_seedN.py, which has the
study's options in it.

A stage's first block is never measured, so it is never chosen. With the
default step_blocks, `all` has steps there too for SE and the other modules
that see f alone, but not for StepNet.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import functools
import operator
import re
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

from block_choice import (
    random_blocks,
    rank_blocks,
    read_pooled,
    step_blocks,
    warn_of_no_area,
)
from mmengine.config import Config

from stepnet_mm.config.conversion import find_config
from stepnet_mm.config.digests import config_digest
from stepnet_mm.config.inheriting_config import inherit
from stepnet_mm.launch.entry import build_model
from stepnet_mm.models import StepBackbone
from stepnet_mm.stiffness import DEFINITIONS, read_stiffness_record
from stepnet_mm.utils.command_line import command_parser, output_folder
from stepnet_mm.utils.files import file_digest, write_new

#: What a study measures.
MEASURE = dict(num_samples=2000, definitions=[*DEFINITIONS])


def parse_args():
    parser = command_parser(__doc__)
    parser.add_argument(
        'records', nargs='+', help='files of measure_stiffness.py')
    parser.add_argument(
        '-k', nargs='+', type=int, required=True,
        help='how many blocks to choose')
    parser.add_argument(
        '--configs', nargs='+', required=True, metavar='CONFIG',
        help='of the network with a step, such as StepNet and SE')
    parser.add_argument(
        '--out', type=output_folder, required=True,
        help='folder of the new configs')
    parser.add_argument(
        '--random-seeds', nargs='+', type=int, default=[0], metavar='SEED',
        help='of the random choices; default: 0')
    parser.add_argument(
        '--by', choices=['area', 'mean'], default='area',
        help='as in select_blocks.py; default: area')
    parser.add_argument(
        '--study', metavar='NAME.py',
        help='write a study file of all of them too, into --out')
    parser.add_argument(
        '--seeds', nargs='+', type=int, default=[0, 1, 2], metavar='SEED',
        help='of the runs of --study; default: 0 1 2')
    return parser.parse_args()


class StepConfig(NamedTuple):
    """A config whose backbone takes step_blocks.

    Attributes:
        path (Path): the file.
        keys (tuple[str, ...]): of the backbone, from ``'model'`` on.
        blocks (list[tuple]): name, stage and index in the stage of each
            block that a measurement of the network has.
        stages (int): how many stages the backbone has.
    """
    path: Path
    keys: tuple[str, ...]
    blocks: list[tuple[str, int, int]]
    stages: int

    def without_step(self) -> str:
        """A digest of the config without its step, seed and folder."""
        cfg = Config.fromfile(self.path)
        backbone = functools.reduce(operator.getitem, self.keys, cfg)
        for key in ('step', 'step_blocks'):
            backbone.pop(key, None)
        return config_digest(cfg)


def read_config(name: str) -> StepConfig:
    """Of a path, or of mmdet::FOLDER/FILE.py.

    Raises:
        ValueError: if there is no such config, or not one such backbone.
    """
    path = find_config(name)
    found = [(key, module) for key, module in build_model(
        Config.fromfile(path), start=False).named_modules()
        if isinstance(module, StepBackbone) and None not in (
            module.step if isinstance(module.step, list | tuple)
            else [module.step])]
    if len(found) != 1:
        raise ValueError(
            f'{name}: expected one backbone that takes step_blocks, with '
            f'a step in every stage, got {len(found)}; take the config '
            'with the step, such as StepNet or SE (the plain network is '
            'written as `none`), or convert it by tools/to_stepnet.py')
    (key, backbone), = found
    blocks = [(f'{key}.{layer}.{i}', stage, i)
              for stage, layer in enumerate(backbone.res_layers, 1)
              for i in range(1, len(getattr(backbone, layer)))]
    return StepConfig(path, ('model', *key.split('.')), blocks,
                      len(backbone.res_layers))


def check(name: str, record, configs: list[StepConfig]) -> None:
    """Refuse a record of another network than the configs'.

    Args:
        name (str): of the record.
        record (StiffnessRecord): the record.
        configs (list[StepConfig]): the configs.

    Raises:
        ValueError: if the blocks differ.
    """
    header = record.header
    found = [*zip(header.blocks, header.stage, header.position)]
    for config in configs:
        if (found, header.stages) != (config.blocks, config.stages):
            raise ValueError(
                f'{name}: expected the {len(config.blocks)} blocks of '
                f'{config.path}, {config.blocks!r:.200}, got {len(found)}, '
                f'{found!r:.200}; measure that network, without --blocks, or '
                'name another config')


def choices(args, record) -> dict[str, tuple[str, dict]]:
    """End of a file's name -> where its steps are, and what it changes."""
    of = f'of {len(record.header.blocks)} measured blocks'
    found = dict(none=('in no block', dict(step=None)),
                 all=('where it has them', {}))

    def add(name, what, chosen):
        found[name] = what, dict(step_blocks=step_blocks(
            chosen, record.header.stages))

    rows = rank_blocks(record, args.by)
    for k in args.k:
        if args.by == 'area':
            warn_of_no_area(rows, k)
        add(f'stiffest{k}', f'in the {k} stiffest {of}, by {args.by}',
            rows[:k])
        for seed in args.random_seeds:
            add(f'random{k}_draw{seed}',
                f'in {k} {of}, drawn with seed {seed}',
                random_blocks(record.header, k, seed))
    return found


def make_texts(args, configs: list[StepConfig],
               record) -> list[tuple[Path, str]]:
    """The new files."""
    origin = [*map(describe_record, args.records),
              f'# Command: {shlex.join(["python", *sys.argv])}']
    texts, plain = [], set()
    files: dict[str, list[Path]] = {}
    for end, (what, changes) in choices(args, record).items():
        for config in configs:
            if end == 'none':
                if (digest := config.without_step()) in plain:
                    continue
                plain.add(digest)
            path = args.out / f'{config.path.stem}_{end}.py'
            files.setdefault(end, []).append(path)
            texts.append((path, join([
                f'# {config.path.stem} with steps {what} (LTH4SA, §3.1).',
                *origin,
                *inherit(config.path, args.out.absolute(),
                         {config.keys: changes} if changes else {})])))
    if args.study:
        if Path(args.study).name != args.study:
            raise ValueError('--study: expected the name of a file in --out, '
                             f'got {args.study}; correct it')
        texts.append((args.out / args.study,
                      study_text(args.seeds, files, origin)))
    return texts


def study_text(seeds: list[int], files: dict[str, list[Path]],
               origin: list[str]) -> str:
    """The study of all the new files, which are given by their ends.

    An end is the method's name where it is that of one file alone.
    """
    methods = {end if len(paths) == 1
               else re.sub(r'\W|_seed', '_', path.stem): path.name
               for end, paths in files.items() for path in paths}
    if len(methods) < sum(map(len, files.values())):
        raise ValueError('--configs: expected names that differ by letters '
                         f'and digits, got {[*methods]} for all; rename some')
    return join([
        '"""LTH4SA (§3.1): steps in no, in all and in few blocks."""',
        *origin,
        'methods = {',
        *(f'    {name!r}: dict(config={file!r}),'
          for name, file in methods.items()),
        '}',
        f'seeds = {seeds}',
        f'measure = {MEASURE}',
    ])


def join(lines: list[str]) -> str:
    return '\n'.join(lines) + '\n'


def describe_record(name: str) -> str:
    """A comment, on one line: which file, of which config."""
    config = read_stiffness_record(name).header.meta.get('config')
    return f'# Record: {name} (sha256 {file_digest(name)}), config {config!r}'


def write(texts: list[tuple[Path, str]]) -> None:
    """All files or none; no other one is overwritten."""
    paths = [path for path, _ in texts]
    there = sorted({str(path) for path in paths
                    if path.exists() or paths.count(path) > 1})
    if there:
        raise ValueError(
            f'--out: expected new files of different names, got {there}, '
            'which would be overwritten; name another folder, delete them, '
            'or rename a config')
    for path, text in texts:
        write_new(path, text)
        print(path)


def main():
    args = parse_args()
    record = read_pooled(args.records, args.k)
    configs = [read_config(name) for name in args.configs]
    check(args.records[0], record, configs)
    write(make_texts(args, configs, record))


if __name__ == '__main__':
    main()
