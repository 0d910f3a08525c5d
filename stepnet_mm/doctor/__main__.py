"""Says whether this machine and environment are fit to train with.

python -m stepnet_mm.doctor [--config CONFIG] [--work-dir DIR]
python -m stepnet_mm.doctor --device cuda --json doctor.json

Each line begins with ok, skipped, warning or error and ends with what to do.
The exit code is 1 if there was an error. A tiny StepNet of each library trains
for a few seconds; else nothing is changed and nothing downloaded.

With --device it tries in at most 5 minutes the operations of a training on
that device, and compares the time of the fused tail with that of fused=False.
"""
import argparse
import re
import sys

from ..utils.command_line import (
    check_output,
    command_parser,
    output_file,
    positive,
)
from . import machine, versions
from .check_process import CheckProcess
from .report import Report

#: The checks of an environment, module and function.
ENVIRONMENT = ('trainings:resume', 'machine:operators')
#: The checks of a device. Trainings set torch to be deterministic and start
#: processes, compilers take minutes: the times come before them.
DEVICE = ('numerics:kernels', 'numerics:backbone', 'numerics:steps',
          'cost:cost', 'trainings:amp', 'trainings:tns_hook',
          'trainings:detector', 'trainings:resume', 'trainings:ddp',
          'cost:compiled')


def main(arguments: list[str] | None = None) -> int:
    """Run the checks of the command line; 1 if there was an error, else 0."""
    args = _parse(arguments)
    device = args.device or ''
    report, process = Report(args.json), CheckProcess(device, args.seconds)

    def run(check: str, argument: str, name: str = '') -> None:
        report.add(process.run(f'{__package__}.{check}', argument, name))

    report.add(versions.check())
    for name in versions.present():
        run('versions:load', name, f'import {name}')
    kind = device.partition(':')[0]
    if not report.counts['error']:
        run('machine:device', kind)
    if not report.counts['error']:
        for check in DEVICE if device else ENVIRONMENT:
            run(check, kind)
    if not device:
        report.add(machine.check(args.work_dir, args.data_root))
    if args.config:
        run('machine:config', args.config)
    process.stop()
    return report.end()


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = command_parser(__doc__)
    parser.prog = 'python -m stepnet_mm.doctor'
    parser.add_argument('--config', help='check a config and its files too')
    parser.add_argument('--work-dir', default='work_dirs',
                        help='whose disk is looked at')
    parser.add_argument('--data-root', default='data',
                        help='folder of the datasets')
    parser.add_argument('--device', help='check that device in place of the '
                        'machine: cuda, cuda:1, ... (that GPU alone) or cpu')
    parser.add_argument('--seconds', type=positive, default=300,
                        help='for all checks (default: 300)')
    parser.add_argument('--json', type=output_file, metavar='FILE',
                        help='write all lines, for an issue')
    args = parser.parse_args(arguments)
    if args.device is not None and not re.fullmatch(
            r'cpu|cuda(:\d+)?', args.device, re.ASCII):
        parser.error('--device: expected cuda, cuda:0, cuda:1, ... or cpu, '
                     f'got {args.device!r}; change it')
    check_output('--json', args.json, [args.config])
    return args


if __name__ == '__main__':
    sys.argv[0] = 'doctor'  # what Ctrl-C names
    from ..utils import interrupts  # noqa: F401  Ctrl-C from here on
    sys.exit(main())
