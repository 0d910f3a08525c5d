#!/usr/bin/env python
r"""Configs with steps in a few blocks: the lottery-ticket reading of §3.1.

python tools/analysis/lottery_configs.py RECORD... -k 9 18 \
  --configs configs/resnet164/resnet164_{stepnet,se}_cifar10.py \
  --random-seeds 0 1 2 --out work_dirs/lth4sa --study tickets.py
bash tools/study.sh work_dirs/lth4sa/tickets.py

From stiffness records of one network (several seeds are taken together) and
configs of that network with a step. Each new config inherits one of --configs
and is trained as it is, by tools/train.py, or all with several --seeds, by
tools/study.sh and the study file that --study names:

CONFIG_stiffestK      steps in the K stiffest of the measured blocks, as
                      select_blocks.py ranks them
CONFIG_randomK_drawN  in K of the same blocks, drawn with seed N; those of a
                      smaller K are among those of a greater one
CONFIG_all            in the blocks in which CONFIG has them
CONFIG_none           in no block; once for configs that differ in the step

Records are compared with the configs by names and indices of blocks alone, so
that of another data set, step or layout (preact) may fit: take one of a
trained network of the configs' own layout and data, with steps in all blocks,
as in the paper's measurements, or plain. The new files name its config. Of a
run of a study, --configs takes WORK_DIR/configs/METHOD_seedN.py, which has the
study's options in it.

A stage's first block is never measured, so it is never chosen. With the
default step_blocks, `all` has steps there too for SE and the other modules
that see f alone, but not for StepNet.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import argparse
import copy
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from mmengine.config import Config

from stepnet_mm.analysis import (
    check_block_count,
    pool_records,
    random_blocks,
    step_blocks,
    stiffest_blocks,
)
from stepnet_mm.config.conversion import find_config
from stepnet_mm.config.digests import config_digest
from stepnet_mm.config.inheriting_config import inherit
from stepnet_mm.launch.entry import build_model
from stepnet_mm.models import StepBackbone
from stepnet_mm.stiffness import (
    DEFINITIONS,
    RecordHeader,
    StiffnessRecord,
    read_stiffness_record,
)
from stepnet_mm.utils.command_line import output_folder
from stepnet_mm.utils.files import file_digest, write_new

#: What a study measures.
MEASURE = dict(num_samples=2000, definitions=[*DEFINITIONS])


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
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
        '--study', type=study_name, metavar='NAME.py',
        help='write a study file of all of them too, into --out')
    parser.add_argument(
        '--seeds', nargs='+', type=int, default=[0, 1, 2], metavar='SEED',
        help='of the runs of --study; default: 0 1 2')
    return parser.parse_args()


def study_name(text: str) -> str:
    if not re.fullmatch(r'[\w-]+\.py', text):
        raise argparse.ArgumentTypeError(
            f'expected a file name such as tickets.py, got {text!r}; it lies '
            'in --out')
    return text


@dataclass
class StepConfig:
    """A config whose backbone takes step_blocks.

    Attributes:
        path (Path): the file.
        cfg (Config): what it says.
        keys (tuple[str, ...]): of the backbone, from ``'model'`` on.
        blocks (list[tuple]): name, stage and index in the stage of each
            block that a measurement of the network has.
        stages (int): how many stages the backbone has.
    """
    path: Path
    cfg: Config
    keys: tuple[str, ...]
    blocks: list[tuple[str, int, int]]
    stages: int

    @classmethod
    def read(cls, name: str) -> 'StepConfig':
        """Of a path, or of mmdet::FOLDER/FILE.py.

        Raises:
            ValueError: if there is no such config, or not one such backbone.
        """
        path = find_config(name)
        cfg = Config.fromfile(path)
        model = build_model(cfg, start=False)
        found = [(key, module) for key, module in model.named_modules()
                 if isinstance(module, StepBackbone) and has_step(module.step)]
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
        return cls(path, cfg, ('model', *key.split('.')), blocks,
                   len(backbone.res_layers))

    def without_step(self) -> str:
        """A digest of the config, but for step, seed and folder."""
        cfg = copy.deepcopy(self.cfg)
        node = cfg
        for key in self.keys:
            node = node[key]
        for key in ('step', 'step_blocks'):
            node.pop(key, None)
        return config_digest(cfg)


def has_step(step) -> bool:
    """Whether the argument ``step`` of a backbone leaves no stage out."""
    return None not in (step if isinstance(step, (list, tuple)) else [step])


def check_network(config: StepConfig, header: RecordHeader,
                  name: str) -> None:
    """Refuse the record of another network than the config's.

    Args:
        config (StepConfig): the config.
        header (RecordHeader): of the record.
        name (str): the record's, for the error.

    Raises:
        ValueError: if their blocks differ.
    """
    found = [*zip(header.blocks, header.stage, header.position)]
    if (found, header.stages) != (config.blocks, config.stages):
        raise ValueError(
            f'{name}: expected the blocks of {config.path}, '
            f'{describe(config.blocks, config.stages)}, got '
            f'{describe(found, header.stages)}; measure that network, '
            'without --blocks, or name another config')


def describe(blocks: list[tuple[str, int, int]], stages: int) -> str:
    """Blocks in few words."""
    counts = [sum(stage == s for _, stage, _ in blocks)
              for s in range(1, stages + 1)]
    names = [name for name, _, _ in blocks]
    return f'{counts} by stage from {names[0]} to {names[-1]}'


def check_args(args, record: StiffnessRecord) -> None:
    for k in args.k:
        check_block_count(k, record.header, '-k')
    if not record.finite.any():
        raise ValueError(
            f'{", ".join(args.records)}: expected a sample with a finite NSI '
            f'everywhere, got none in {len(record.nsi)}; measure a network '
            'that does not diverge')
    names = [method_name(Path(name).stem) for name in args.configs]
    if len(set(names)) < len(names):
        raise ValueError('--configs: expected files of different names, got '
                         f'{names}; rename one, or write into two folders')
    if len(set(args.seeds)) < len(args.seeds) or min(args.seeds) < 0:
        raise ValueError('--seeds: expected different numbers from 0, got '
                         f'{args.seeds}; change them')


def choices(args, record: StiffnessRecord) -> dict[str, tuple]:
    """End of the file's name -> what it is, and the chosen blocks."""
    header, found = record.header, {}
    of = f'of {len(header.blocks)} measured blocks'
    for k in args.k:
        found[f'stiffest{k}'] = (f'the {k} stiffest {of}, by {args.by}',
                                 stiffest_blocks(record, k, args.by))
        for seed in args.random_seeds:
            found[f'random{k}_draw{seed}'] = (
                f'{k} {of}, drawn with seed {seed}',
                random_blocks(header, k, seed))
    return {name: (what, step_blocks(chosen, header.stages))
            for name, (what, chosen) in found.items()}


def make_texts(args, configs: list[StepConfig],
               record: StiffnessRecord) -> dict[Path, str]:
    """The new files."""
    chosen, texts, plain = choices(args, record), {}, []
    files: dict[str, list[Path]] = {}
    for config in configs:
        settings = {}
        if config.without_step() not in plain:
            plain.append(config.without_step())
            settings['none'] = 'in no block', dict(step=None)
        settings['all'] = 'where it has them', {}
        settings.update({name: (f'in {what}', dict(step_blocks=blocks))
                         for name, (what, blocks) in chosen.items()})
        for name, (what, changes) in settings.items():
            path = args.out / f'{config.path.stem}_{name}.py'
            texts[path] = make_text(args, config, what, changes)
            files.setdefault(name, []).append(path)
    if args.study:
        add_study(args, files, texts)
    return texts


def make_text(args, config: StepConfig, what: str, changes: dict) -> str:
    """A config that inherits another one, and says where it comes from."""
    return join([
        f'# {config.path.stem} with steps {what} (LTH4SA, §3.1).',
        *origin(args),
        *inherit(config.path, args.out.absolute(),
                 {config.keys: changes} if changes else {})
    ])


def add_study(args, files: dict[str, list[Path]],
              texts: dict[Path, str]) -> None:
    """Add the study of all the new files.

    Args:
        args (Namespace): of the command.
        files (dict): how the names of new files end -> these files. It is
            the method's name where it is that of one file alone.
        texts (dict): the new files, by their paths.

    Raises:
        ValueError: if one of them has the study's name.
    """
    path = args.out / args.study
    if path in texts:
        raise ValueError(f'--study: expected a name that no config has, got '
                         f'{args.study}; choose another')
    methods = {
        end if len(paths) == 1 else method_name(path.stem): path.name
        for end, paths in files.items() for path in paths
    }
    texts[path] = join([
        '"""LTH4SA (§3.1): steps in no, in all and in few blocks."""',
        *origin(args),
        'methods = {',
        *(f'    {name!r}: dict(config={file!r}),'
          for name, file in methods.items()),
        '}',
        f'seeds = {args.seeds}',
        f'measure = {MEASURE}',
    ])


def method_name(stem: str) -> str:
    """A file's name as a study may call a method."""
    return re.sub(r'\W|_seed', '_', stem)


def origin(args) -> list[str]:
    """Comments: which records and which command a file comes from."""
    return [*map(describe_record, args.records),
            f'# Command: {shlex.join(["python", *sys.argv])}']


def join(lines: list[str]) -> str:
    return '\n'.join(lines) + '\n'


def describe_record(name: str) -> str:
    """A comment, on one line: which file, of which config."""
    config = read_stiffness_record(name).header.meta.get('config')
    return f'# Record: {name} (sha256 {file_digest(name)}), config {config!r}'


def write(texts: dict[Path, str]) -> None:
    """All files or none; no other one is overwritten."""
    there = [str(path) for path in texts if path.exists()]
    if there:
        raise ValueError(
            f'--out: expected new files, got {", ".join(there)}, which '
            'would be overwritten; name another folder, or delete them')
    for path, text in texts.items():
        write_new(path, text)
        print(path)


def main():
    args = parse_args()
    record = pool_records(
        [read_stiffness_record(path) for path in args.records], args.records)
    check_args(args, record)
    configs = [StepConfig.read(name) for name in args.configs]
    for config in configs:
        check_network(config, record.header, args.records[0])
    write(make_texts(args, configs, record))


if __name__ == '__main__':
    main()
