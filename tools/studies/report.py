#!/usr/bin/env python
"""Tables and figures of studies, of the runs that have their record.

python tools/studies/report.py STUDY                   # prints a page
python tools/studies/report.py STUDY ... --out PAGE    # PAGE.md and figures
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import argparse
import os
import re
import signal
import sys
from dataclasses import replace
from pathlib import Path

from stepnet_mm.config_path import config_path
from stepnet_mm.studies.page import study_page
from stepnet_mm.studies.records import read_records
from stepnet_mm.studies.study import methods_of, read_study
from stepnet_mm.utils.command_line import check_output, printable
from stepnet_mm.utils.files import differing_files


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('study', nargs='+', help='study files that compare')
    parser.add_argument(
        '--records', type=Path, nargs='+', default=[],
        help='files of the records (default: results/STUDY.jsonl of each)')
    parser.add_argument(
        '--methods', nargs='+', help='some of the methods only')
    parser.add_argument(
        '--out', type=Path, metavar='PAGE',
        help='write PAGE.md and figures/PAGE_*.png beside it '
        '(default: print the page, without figures)')
    parser.add_argument(
        '--check', action='store_true',
        help='write nothing, fail where PAGE.md is not what the records give')
    return parser.parse_args()


def studies_from(args):
    """Study files, with the methods that the arguments choose."""
    studies = [read_study(path) for path in args.study]
    if not args.methods:
        return studies
    names = [method.name for method in methods_of(studies)]
    if unknown := sorted(set(args.methods) - set(names)):
        raise ValueError(f'--methods: expected some of {names}, got {unknown};'
                         ' correct the names')
    chosen = [replace(study, methods=[method for method in study.methods
                                      if method.name in args.methods])
              for study in studies]
    return [study for study in chosen if study.methods]


def record_files(args, studies) -> list[Path]:
    """Those that the user names, which have to be there, or the studies'."""
    if absent := [str(path) for path in args.records if not path.is_file()]:
        raise ValueError('--records: expected files of records, got '
                         f'{", ".join(absent)}, which are not there; correct '
                         'the paths')
    return args.records or [
        Path('results') / f'{study.name}.jsonl' for study in studies]


def report(args) -> int:
    if args.check and not args.out:
        raise ValueError('--check: expected --out PAGE beside it, got none; '
                         'add the page to compare')
    studies = studies_from(args)
    files = record_files(args, studies)
    records = read_records(*files)
    if args.methods:
        records = [r for r in records if r.method in args.methods]
    if args.out and args.out.suffix == '.md':
        args.out = args.out.with_suffix('')
    page = study_page(
        studies, records, paper_figure, commands_of(args, studies),
        figures_of(args, studies, records), args.out.name if args.out else '')
    if args.out is None:
        print(page, flush=True)
        return 0
    path = args.out.with_name(f'{args.out.name}.md')
    if args.check:
        if not differing_files({path: page}):
            return 0
        print(f'not up to date: {path}')
        return 1
    check_output('--out', path, [*files, *args.study])
    args.out.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page)
    return 0


def paper_figure(name: str) -> str | None:
    """The figure that a config's docstring gives as the paper's."""
    text = Path(config_path(name)).read_text()
    figure = re.search(r'^Paper: (.*)\.$', text, re.M)[1]
    return None if figure == 'no figure' else figure


def figures_of(args, studies, records) -> dict[str, str]:
    """Caption -> link of the page's figures; --check does not write them."""
    if args.out is None:
        return {}
    from stepnet_mm.visualization.study_figures import (
        figure_links,
        write_figures,
    )
    names = [method.name for method in methods_of(studies)]
    return (figure_links if args.check else write_figures)(
        records, names, args.out)


def commands_of(args, studies) -> list[str]:
    """What made the records, and this page."""
    options = [f'--out {path_text(args.out)}'] if args.out else []
    if args.methods:
        options.append('--methods ' + ' '.join(args.methods))
    if args.records:
        options.append('--records ' + ' '.join(map(path_text, args.records)))
    paths = [path_text(study.path) for study in studies]
    return [*(f'bash tools/study.sh {path}' for path in paths),
            ' '.join(['python tools/studies/report.py', *paths, *options])]


def path_text(path) -> str:
    """A path for a page: relative, or without folders of this machine."""
    path = Path(path)
    return os.path.relpath(path) if path.resolve().is_relative_to(
        Path.cwd()) else path.name


def main():
    args = parse_args()
    try:
        sys.exit(report(args))
    except BrokenPipeError:  # head has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except (OSError, ValueError) as error:
        print(f'report.py: error: {printable(str(error))}', file=sys.stderr)
        sys.exit(2)


if __name__ == '__main__':
    main()
