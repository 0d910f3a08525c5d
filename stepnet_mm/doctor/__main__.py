"""Says whether this machine and environment are fit to train with.

python -m stepnet_mm.doctor [--config CONFIG] [--work-dir DIR]
python -m stepnet_mm.doctor --device cuda --json doctor.json

Each line begins with ok, skipped, warning or error and ends with what to do.
The exit code is 1 if there was an error. A tiny StepNet of each library trains
for a few seconds; else nothing is changed and nothing downloaded.

With --device it tries that device's kernels too, and a training with one rank
for each GPU (two on a CPU); the disks are left out.
"""
import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable

from ..utils.command_line import (
    check_output,
    command_parser,
    output_file,
    positive,
)
from . import environment, process

#: The checks of an environment and of a device: module and function.
ENVIRONMENT = 'trials:resume', 'environment:mmcv_operators'
DEVICE = ('trials:kernels', 'environment:mmcv_operators', 'trials:resume',
          'trials:ddp')


def main(arguments: list[str] | None = None) -> int:
    """Run the checks of the command line; 1 if there was an error, else 0."""
    args = _parse(arguments)
    end = time.monotonic() + args.seconds
    rows: list[dict] = []
    counts = Counter(ok=0, skipped=0, warning=0, error=0)

    def report(found: Iterable[dict], finished: bool = False) -> None:
        for row in found:
            rows.append(row)
            counts[row['level']] += 1
            print(f'{row["level"]:<8} {row["text"]}', flush=True)
        if args.json:
            args.json.parent.mkdir(parents=True, exist_ok=True)
            args.json.write_text(json.dumps(dict(
                command=sys.argv, finished=finished, counts=counts,
                rows=rows), indent=1) + '\n')

    def run(check: str, argument: str = args.device) -> None:
        report(process.run(f'{__package__}.{check}', argument, args.device,
                           args.seconds / 2, end - time.monotonic()))

    report(environment.versions())
    if not counts['error']:
        run('environment:device')
    if not counts['error']:
        for check in DEVICE if args.device else ENVIRONMENT:
            run(check)
    if not args.device:
        run('environment:machine', args.work_dir)
    if args.config:
        run('environment:config', args.config)
    report([], finished=True)
    print('; '.join(f'{number} {level}' for level, number in counts.items()))
    return int(counts['error'] > 0)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = command_parser(__doc__)
    parser.prog = 'python -m stepnet_mm.doctor'
    parser.add_argument('--config', help='check a config and its files too')
    parser.add_argument('--work-dir', default='work_dirs',
                        help='whose disk is looked at')
    parser.add_argument('--device', choices=['cuda', 'cpu'], default='',
                        help='check that device in place of the machine')
    parser.add_argument('--seconds', type=positive, default=300,
                        help='for all checks (default: 300)')
    parser.add_argument('--json', type=output_file, metavar='FILE',
                        help='write all lines, for an issue')
    args = parser.parse_args(arguments)
    check_output('--json', args.json, [args.config])
    return args


if __name__ == '__main__':
    sys.argv[0] = 'doctor'  # what Ctrl-C names
    from ..utils import interrupts  # noqa: F401  Ctrl-C from here on
    sys.exit(main())
