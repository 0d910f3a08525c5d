"""Says whether this machine and environment are fit to train with.

python -m stepnet_mm.doctor [--config CONFIG] [--work-dir DIR]

Each line begins with ok, warning or error and ends with what to do. The exit
code is 1 if there was an error. A tiny StepNet of each library trains for a
few seconds; else nothing is changed and nothing downloaded.
"""
import argparse
import sys

from .launch import inputs, libraries, machine, versions
from .launch.report import Report


def main(arguments: list[str] | None = None) -> int:
    """Check all, and print it.

    Args:
        arguments (list[str], optional): those of the command line.

    Returns:
        int: 1 if there was an error, else 0.
    """
    parser = argparse.ArgumentParser(
        prog='python -m stepnet_mm.doctor', description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--config', help='check a config and its files too')
    parser.add_argument('--work-dir', default='work_dirs')
    parser.add_argument('--data-root', default='data')
    args = parser.parse_args(arguments)
    report = Report()
    _check_software(report)
    if not libraries.import_error('torch'):
        machine.check_devices(report)
    machine.check_slurm(report)
    machine.check_disk(report, args.work_dir)
    inputs.check_weights(report)
    inputs.check_data(report, args.data_root)
    if args.config:
        inputs.check_config(report, args.config)
    print('; '.join(f'{number} {level}'
                    for level, number in report.counts.items()))
    return int(report.counts['error'] > 0)


def _check_software(report: Report) -> None:
    versions.check_python(report)
    versions.check_tried(report, versions.check_versions(report))
    libraries.check_imports(report)
    if not report.counts['error']:
        for library in libraries.check_registries(report):
            libraries.check_training(report, library)


if __name__ == '__main__':
    from .utils import interrupts  # noqa: F401  Ctrl-C from here on
    sys.exit(main())
