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
import time
from collections.abc import Iterator

from ..utils.command_line import (
    check_output,
    command_parser,
    output_file,
    positive,
)
from . import machine, process, versions
from .report import Report, row

#: The checks of an environment, module and function.
ENVIRONMENT = ('trainings:resume', 'machine:operators')
#: The checks of a device.
DEVICE = ('numerics:kernels', 'numerics:backbone', 'numerics:steps',
          'cost:cost', 'trainings:detector', 'trainings:resume',
          'trainings:ddp')


def main(arguments: list[str] | None = None) -> int:
    """Run the checks of the command line; 1 if there was an error, else 0."""
    args = _parse(arguments)
    report, device = Report(args.json), args.device or ''
    kind, end = device.partition(':')[0], time.monotonic() + args.seconds

    def run(check: str, argument: str, name: str = '') -> Iterator[dict]:
        name, left = name or check.rpartition(':')[2], end - time.monotonic()
        if left < 1:
            yield row('warning', f'{name}: not checked, the time is over: set '
                      'a higher --seconds', check=name)
            return
        yield from process.run(name, f'{__package__}.{check}', argument,
                               device, min(left, args.seconds / 2))

    report.add(versions.check())
    found = [] if report.counts['error'] else [*run('machine:device', kind)]
    if not found or found[-1]['level'] == 'error':  # by an import?
        for name in versions.present():
            report.add(run('versions:load', name, f'import {name}'))
    report.add(found)
    if not report.counts['error']:
        for check in DEVICE if device else ENVIRONMENT:
            report.add(run(check, kind))
    if not device:
        report.add(machine.check(args.work_dir))
    if args.config:
        report.add(run('machine:config', args.config))
    return report.end()


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = command_parser(__doc__)
    parser.prog = 'python -m stepnet_mm.doctor'
    parser.add_argument('--config', help='check a config and its files too')
    parser.add_argument('--work-dir', default='work_dirs',
                        help='whose disk is looked at')
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
