#!/usr/bin/env python
"""Measure NSI and TNS of a network on the data of its own config.

python tools/analysis/measure_stiffness.py CONFIG CHECKPOINT --num-samples 512

Without a checkpoint the network is measured at its start, as training would
begin. NSI of every sample and block goes into a record, one JSON line a
batch; a measurement that was cut goes on from there when the same command is
run again. Records are read by plot.py, select_blocks.py and
lottery_configs.py.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

from measurement import Measurement, add_measuring_options

from stepnet_mm.launch.entry import make_config_parser, output_of
from stepnet_mm.recording import list_blocks
from stepnet_mm.utils.command_line import output_file


def parse_args():
    parser = make_config_parser(__doc__)
    parser.add_argument('checkpoint', nargs='?', help='weights')
    parser.add_argument(
        '--out', type=output_file,
        help='the record (default: beside the checkpoint, '
        '<checkpoint>_stiffness.jsonl; without one in the work dir)')
    parser.add_argument('--name', help="in figures (default: the config's)")
    add_measuring_options(parser)
    parser.add_argument(
        '--list', action='store_true', help='list the blocks, and stop')
    return parser.parse_args()


def main():
    args = parse_args()
    if args.list:
        return print(list_blocks(Measurement(args).blocks))
    measurement = Measurement(
        args, lambda cfg: output_of(cfg, args, '_stiffness.jsonl'))
    record = measurement.run()
    for key, value in record.summary().items():
        print(f'{key:24} {value:.6g}')
    print(f'record: {measurement.path}')


if __name__ == '__main__':
    main()
