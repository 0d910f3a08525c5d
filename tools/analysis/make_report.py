#!/usr/bin/env python
"""One self-contained report.html about the stiffness of a run.

python tools/analysis/make_report.py work_dirs/resnet164_stepnet_cifar10

Shows the stiffness records of the work dir (*.jsonl of measure_stiffness.py),
the curve of each TNSHook over training and the pictures of each
AttentionMapHook. The page asks for nothing from outside, so that it can be
mailed or printed as it is.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import argparse
from pathlib import Path

from stepnet_mm.analysis import choose_definition, read_stiffness_curves
from stepnet_mm.attention import read_attention_histories
from stepnet_mm.stiffness import DEFINITIONS, read_stiffness_record
from stepnet_mm.utils.command_line import check_output, output_file
from stepnet_mm.utils.files import written_whole
from stepnet_mm.visualization.report import render_report


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('work_dir', type=Path, help='of a training run')
    parser.add_argument(
        '--records',
        nargs='+',
        type=Path,
        help='stiffness records; default: WORK_DIR/*.jsonl')
    parser.add_argument(
        '--definition', choices=DEFINITIONS,
        help='of NSI: shows the records of it alone (default: residual where '
        'there is one)')
    parser.add_argument(
        '--out', type=output_file,
        help='file to write (default: WORK_DIR/report.html)')
    parser.add_argument(
        '--title', help='its heading (default: the name of the work dir)')
    parser.add_argument(
        '--m1', type=float, default=.5, help='M1 of the tables')
    parser.add_argument(
        '--m2', type=float, default=0., help='M2 of the tables')
    return parser.parse_args()


def find_records(work_dir: Path) -> list:
    """The stiffness records of a work dir.

    Raises:
        FileNotFoundError: if it has none.
    """
    found = sorted(work_dir.glob('*.jsonl'))
    if not found:
        raise FileNotFoundError(
            f'{work_dir}: expected a stiffness record *.jsonl, got none; make '
            'one with tools/analysis/measure_stiffness.py, or name some with '
            '--records')
    return found


def read_records(paths: list, definition: str | None,
                 work_dir: Path) -> list:
    """The records of one definition; those of one name by their files."""
    found = {
        path: read_stiffness_record(path, partial=True).header.definition
        for path in paths
    }
    chosen = choose_definition(found.values(), definition, str(work_dir))
    shown = {path: read_stiffness_record(path)
             for path, name in found.items() if name == chosen}
    left = ', '.join(path.name for path in found if path not in shown)
    print(f'Definition of NSI: {chosen}'
          + (f'; of others, not shown: {left}' if left else ''))
    names = [record.name for record in shown.values()]
    return [record.renamed(f'{record.name}, {path.name}')
            if names.count(record.name) > 1 else record
            for path, record in shown.items()]


def main():
    args = parse_args()
    paths = args.records or find_records(args.work_dir)
    out = args.out or args.work_dir / 'report.html'
    check_output('--out', out, [*paths, *args.work_dir.glob('*/*/*')])
    page = render_report(
        args.title or f'Neural stiffness of {args.work_dir.resolve().name}',
        read_records(paths, args.definition, args.work_dir),
        read_stiffness_curves(args.work_dir), args.m1, args.m2,
        read_attention_histories(args.work_dir))
    with written_whole(out) as file:
        file.write(page.encode())
    print(f'Report: {out}')


if __name__ == '__main__':
    main()
