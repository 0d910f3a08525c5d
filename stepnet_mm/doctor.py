"""Says whether this machine and environment are fit to train with.

python -m stepnet_mm.doctor [--config CONFIG] [--work-dir DIR]
python -m stepnet_mm.doctor --device cuda --json doctor.json

Each line begins with ok, skipped, warning or error and ends with what to do.
The exit code is 1 if there was an error. A tiny StepNet of each library trains
for a few seconds; else nothing is changed and nothing downloaded.

With --device it tries in at most 5 minutes what a training on that device
needs, and says whether the fused tail is worth its while there.
"""
import argparse
import functools
import sys
from pathlib import Path

from .device_checks.series import device_name, run_checks, write_json
from .launch import inputs, libraries, machine, versions
from .launch.report import Report
from .utils.command_line import check_output, output_file, positive


def main(arguments: list[str] | None = None) -> int:
    """Check all, and print it.

    Args:
        arguments (list[str], optional): those of the command line.

    Returns:
        int: 1 if there was an error, else 0.
    """
    args, report = _parse(arguments), Report()
    save = functools.partial(_save, args.json, report)
    save()
    if args.device:
        _check_versions(report)
        run_checks(report, args.device, args.seconds, save)
    else:
        _check_all(report, args)
    print('; '.join(f'{number} {level}'
                    for level, number in report.counts.items()))
    save(finished=True)
    return int(report.counts['error'] > 0)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = _parser()
    args = parser.parse_args(arguments)
    if args.device and args.config:
        parser.error('--config: expected no --device beside it, got both; '
                     'call the doctor twice')
    check_output('--json', args.json, [args.config])
    return args


def _save(path: Path | None, report: Report, finished: bool = False) -> None:
    """Write what was found so far: whatever comes, it is kept."""
    try:
        if path:
            write_json(path, report, sys.argv, finished)
    except OSError as error:
        sys.exit(f'--json: expected a file that can be written, got {path} '
                 f'({error.strerror}); choose another')


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='python -m stepnet_mm.doctor', description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--config', help='check a config and its files too')
    parser.add_argument('--work-dir', default='work_dirs',
                        help='whose disk is looked at')
    parser.add_argument('--data-root', default='data',
                        help='folder of the datasets')
    parser.add_argument('--device', type=device_name, metavar='DEVICE',
                        help='try that device, and nothing else: cuda, '
                        'cuda:1, ... (that GPU alone) or cpu')
    parser.add_argument('--seconds', type=positive, default=300,
                        help='for all that --device tries (default: 300)')
    parser.add_argument('--json', type=output_file, metavar='FILE',
                        help='write all lines, for an issue')
    return parser


def _check_all(report: Report, args: argparse.Namespace) -> None:
    _check_software(report)
    if not libraries.import_error('torch'):
        machine.check_devices(report)
    machine.check_slurm(report)
    machine.check_disk(report, args.work_dir)
    machine.check_shared_memory(report)
    inputs.check_weights(report)
    inputs.check_data(report, args.data_root)
    if args.config:
        inputs.check_config(report, args.config)


def _check_software(report: Report) -> None:
    _check_versions(report)
    libraries.check_imports(report)
    if not report.counts['error']:
        for library in libraries.check_registries(report):
            libraries.check_training(report, library)


def _check_versions(report: Report) -> None:
    versions.check_python(report)
    versions.check_tried(report, versions.check_versions(report))


if __name__ == '__main__':
    from .utils import interrupts  # noqa: F401  Ctrl-C from here on
    sys.exit(main())
