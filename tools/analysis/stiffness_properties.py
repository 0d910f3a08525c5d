#!/usr/bin/env python
r"""Measure trained networks, and draw what §3.1 and Appendix D and E say.

python tools/analysis/stiffness_properties.py --out work_dirs/properties \
  --network PLAIN_CONFIG CHECKPOINT --network SE_CONFIG CHECKPOINT CHECKPOINT

Each --network is a config and one checkpoint or several, of different seeds.
All are measured as by measure_stiffness.py, on the data of their own configs,
and what a record has already is not measured again. --out gets:

properties.png   stiff samples (property 1) and stiff blocks (2) over M1
survival.png     δ(M1, M2), with TNS (Fig. 2)
proportion.png   p̂(M1, M2) (Fig. 6)
depth.png        NSI along depth (Fig. 3)
step_NAME.png    step size against NSI (Fig. 9), of networks with known gates
seeds_NAME.png   NSI along depth by checkpoint (Fig. 10), where there are more
summary.md       the numbers

The first four figures show the first checkpoint of each network, and so do
those of steps; the summary has all.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from stepnet_mm.launch.entry import (
    add_config_options,
    beside_checkpoint,
    output_of,
)
from stepnet_mm.launch.measurement import Measurement, add_measuring_options
from stepnet_mm.stiffness import (
    StiffnessRecord,
    check_degrees,
    stiffness_proportion,
    stiffness_survival,
)
from stepnet_mm.utils.command_line import output_folder
from stepnet_mm.utils.files import written_whole
from stepnet_mm.visualization import (
    check_records,
    depth_figure,
    file_name,
    has_steps,
    labels,
    property_figure,
    proportion_figure,
    save_figure,
    seeds_figure,
    step_correlations,
    step_figure,
    style,
    survival_figure,
)

ENDING = '_stiffness.jsonl'
COLUMNS = ('network', 'checkpoint', 'samples', 'not finite, left out', 'TNS',
           'median TNS', '95 % quantile', 'stiff samples', 'stiff blocks')


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        '--network', nargs='+', action='append', required=True,
        metavar=('CONFIG', 'CHECKPOINT'), dest='networks',
        help='a config and its checkpoints; once for each network')
    parser.add_argument(
        '--names', nargs='+', help="of the networks; default: the configs'")
    parser.add_argument(
        '--out', type=output_folder, required=True,
        help='folder of the figures')
    parser.add_argument(
        '--records', type=output_folder,
        help='folder of the records; default: each beside its checkpoint, '
        'where measure_stiffness.py has it')
    parser.add_argument(
        '--m1', type=float, default=.5,
        help='M1 of the degree in the summary; default: 0.5')
    parser.add_argument(
        '--m2', type=float, default=0., help='likewise, M2; default: 0')
    add_config_options(parser)
    add_measuring_options(parser)
    style.add_options(parser)
    args = parser.parse_args()
    args.names = args.names or [Path(n[0]).stem for n in args.networks]
    return args


def check_args(args) -> None:
    """Refuse what would be found wrong only after a measurement."""
    check_degrees([(args.m1, args.m2)], '--m1, --m2')
    for network in args.networks:
        check_network(network)
    if len(set(map(file_name, args.names))) < len(args.names) or len(
            args.names) != len(args.networks):
        raise ValueError(
            '--names: expected different names, one for each of the '
            f'{len(args.networks)} networks, got {args.names}; give them by '
            '--names')


def check_network(network: list[str]) -> None:
    """Refuse what is no config with its checkpoints."""
    if len(network) < 2:
        raise ValueError('--network: expected CONFIG CHECKPOINT..., got '
                         f'{network[0]} alone; name a checkpoint after it')
    for path in network:
        if '://' not in path and not Path(path).is_file():
            raise ValueError(
                '--network: expected a config and files of weights, got '
                f'{path}, which is no file; correct its path')
    if len(set(network)) < len(network):
        raise ValueError('--network: expected different checkpoints, got '
                         f'{network[1:]}; name each once')


def prepare(args, config: str, checkpoint: str) -> Measurement:
    """The network of one checkpoint, ready to be measured."""
    args = argparse.Namespace(**{**vars(args), 'config': config,
                                 'checkpoint': checkpoint, 'name': None})
    try:
        return Measurement(args, lambda cfg: record_path(cfg, args))
    except RuntimeError as error:
        raise ValueError(
            f'--network: expected weights of {config}, got {checkpoint}, '
            'which are not; name its own config or checkpoint '
            f'({str(error):.300})') from error


def record_path(cfg, args) -> Path:
    """Where the record of one checkpoint goes, beside it or in --records."""
    path = beside_checkpoint(cfg, args.checkpoint, ENDING)
    key = '--network'
    if args.records:
        key = '--records'
        path = args.records / f'{Path(args.config).stem}_' \
            f'{path.parent.name}_{path.name}'
    return output_of(cfg, argparse.Namespace(out=path), ENDING, key)


def check_paths(measurements: list[Measurement]) -> None:
    """Refuse checkpoints whose records would be one file."""
    known: dict = {}
    for own in measurements:
        name = f'{own.args.config} {own.args.checkpoint}'
        other = known.setdefault(own.path.resolve(), name)
        if other != name:
            raise ValueError(
                '--network: expected checkpoints whose records have different '
                f'names, got {other} and {name}, both with {own.path}; rename '
                'a folder, a checkpoint or a config')


def measure(measurement: Measurement) -> StiffnessRecord:
    """The record of one checkpoint, which is made or completed."""
    print(f'{measurement.args.config}: {measurement.args.checkpoint}')
    return measurement.run()


def draw(networks: dict[str, list[StiffnessRecord]], args) -> dict:
    """File names without suffix -> Figures."""
    first = [records[0] for records in networks.values()]
    check_records(first)
    figures = dict(
        properties=property_figure(first, args.m2, args.m1),
        survival=survival_figure(first),
        proportion=proportion_figure(first),
        depth=depth_figure(first))
    for name, records in networks.items():
        if has_steps(records[0]):
            figures[f'step_{file_name(name)}'] = step_figure(records[0])
        if len(records) > 1:
            figures[f'seeds_{file_name(name)}'] = seeds_figure(records)
    return figures


def stiff_shares(record: StiffnessRecord, args) -> tuple[float, float]:
    """Of samples (δ, property 1) and of blocks (p̂, property 2)."""
    samples, blocks = (
        share(record.nsi, record.stage, [args.m1], [args.m2]).item()
        for share in (stiffness_survival, stiffness_proportion))
    return samples, blocks


def summarize(networks: dict[str, list[StiffnessRecord]], args) -> str:
    """The text of summary.md."""
    degree = f'M1 = {args.m1:g}, M2 = {args.m2:g}'
    definition = networks[args.names[0]][0].header.definition
    parts = [
        '# Stiffness of trained networks',
        f'Definition of NSI: {definition}. A block is '
        f'stiff to the degree {degree} where its NSI is at least (1 + M1) '
        'times the mean of its stage and at least M2; a sample is stiff where '
        'one of its blocks is.',
        checkpoint_table(networks, args),
        *(describe(name, records, args)
          for name, records in networks.items())
    ]
    return '\n\n'.join(parts) + '\n'


def checkpoint_table(networks: dict[str, list[StiffnessRecord]], args) -> str:
    """A row for each checkpoint."""
    rows = []
    for records in networks.values():
        for name, record in zip(labels(records), records):
            tns = record.tns_summary()
            samples, blocks = stiff_shares(record, args)
            rows.append([
                name, record.header.meta['checkpoint'],
                str(len(record.nsi) - record.lost), str(record.lost),
                *(f'{value:.4g}' for value in tns.values()),
                f'{samples:.1%}', f'{blocks:.1%}'
            ])
    return pd.DataFrame(rows, columns=COLUMNS).to_markdown(
        index=False, disable_numparse=True)


def describe(name: str, records: list[StiffnessRecord], args) -> str:
    """What the numbers of one network say."""
    samples, blocks = zip(*(stiff_shares(record, args) for record in records))
    header = records[0].header
    lines = [
        f'**{name}**, {header.meta["dataset"]}, {len(header.blocks)} measured '
        'blocks.',
        f'Property (1): {spread(samples)} of the samples are stiff.',
        f'Property (2): {spread(blocks)} of the blocks of a sample are.'
    ]
    if not any(samples):
        lines.append('Nothing is stiff to this degree: lower --m1 or --m2.')
    return ' '.join(lines) + ''.join(map(describe_steps, records))


def spread(shares: Sequence[float]) -> str:
    """Mean and range of a share over checkpoints."""
    text = f'{np.mean(shares):.1%}'
    return text if len(shares) == 1 else (
        f'{text} ({min(shares):.1%} to {max(shares):.1%} in {len(shares)} '
        'checkpoints)')


def describe_steps(record: StiffnessRecord) -> str:
    """The correlations of step size and NSI (Fig. 9); '' without a gate."""
    if not has_steps(record):
        return ''
    found = step_correlations(record)
    blocks = found.over_samples[np.isfinite(found.over_samples)]
    text = (f'\n\nStep size and NSI, {record.header.meta["checkpoint"]}: '
            "Pearson's r over the samples is negative in "
            f'{(blocks < 0).sum()} of {len(blocks)} blocks where both vary')
    for stage, r in found.along_depth.items():
        r = r[np.isfinite(r)]
        if len(r):
            text += (f'; r over the blocks of stage {stage} in '
                     f'{(r < 0).mean():.1%} of {len(r)} samples (median '
                     f'{np.median(r):+.2f})')
    return f'{text}.'


def main():
    args = parse_args()
    check_args(args)
    measurements = [[prepare(args, config, path) for path in paths]
                    for config, *paths in args.networks]
    check_paths(sum(measurements, []))
    networks = {
        name: [measure(measurement).renamed(name) for measurement in own]
        for name, own in zip(args.names, measurements)
    }
    with style.use(args.size, args.theme):
        for name, figure in draw(networks, args).items():
            save_figure(figure, args.out / f'{name}.png')
            print(args.out / f'{name}.png')
    text = summarize(networks, args)
    with written_whole(args.out / 'summary.md') as file:
        file.write(text.encode())
    print(f'{args.out / "summary.md"}\n\n{text}')


if __name__ == '__main__':
    main()
