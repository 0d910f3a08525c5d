#!/usr/bin/env python
"""Write what the records of studies give into the pages that show it.

python tools/make_results.py          # write what is not up to date
python tools/make_results.py --check  # fail where something is not

A page that ``studies/report.py`` wrote is written anew by the command on it.
In the pages that users read first, what lies between ``<!-- end -->`` and one
of

<!-- last epoch: STUDY[+STUDY] METHOD ... [less METHOD ...] -->
<!-- tau of TNS: STUDY[+STUDY] [METHOD ...] [without METHOD ...] -->

is a table. The first has a column for each method; with ``less`` a row for
each, and columns of the differences to the methods behind it, and to a
method's own baseline where that has a row. The second has Kendall's tau of
mean TNS with the metric by definition, over the runs of the methods, of all
where none is named.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import argparse
import re
import shlex
import subprocess
import sys
from pathlib import Path

from stepnet_mm.studies.page import WRITTEN
from stepnet_mm.studies.records import read_records
from stepnet_mm.studies.study import methods_of, read_study
from stepnet_mm.studies.tables import (
    accuracy_line,
    kendall_table,
    short_table,
)
from stepnet_mm.utils.files import differing_files, write_differing

ROOT = Path(__file__).resolve().parents[1]
PAGES = ('README.md', 'README_zh-CN.md', 'docs/results.md')
REPORT = re.compile(r'^python (tools/studies/report\.py .*)$', re.M)


def reports() -> list[list[str]]:
    """The commands on the pages that are reports."""
    pages = [page.read_text()
             for page in sorted((ROOT / 'docs/results').glob('*.md'))]
    return [shlex.split(REPORT.search(page)[1]) for page in pages
            if WRITTEN in page]


def is_old(command: list[str]) -> bool:
    """Whether the records give another page now.

    Raises:
        CalledProcessError: if that cannot be said.
    """
    done = run([*command, '--check'])
    if done.returncode != 1:
        done.check_returncode()
    return done.returncode == 1


def run(command: list[str], **options) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *command], cwd=ROOT, **options)


def pages() -> dict[Path, str]:
    """The other pages -> their text, with tables as the records have them."""
    return {page: with_tables(page)
            for name in PAGES if (page := ROOT / name).exists()}


def with_tables(page: Path) -> str:
    """A page's text, with its tables as the records have them.

    Raises:
        ValueError: if a comment names what is not there.
    """
    try:
        return re.sub(
            rf'(<!-- ({"|".join(TABLES)}): (.*?) -->\n).*?(<!-- end -->)',
            _filled, page.read_text(), flags=re.S)
    except (OSError, ValueError) as error:
        raise ValueError(f'{page}: {error}') from error


def _filled(found: re.Match) -> str:
    head, kind, what, end = found.groups()
    try:
        table = TABLES[kind](*what.split())
    except ValueError as error:
        raise ValueError(f'{head.strip()}: {error}') from error
    return f'{head}\n{table}\n\n{end}'


def last_epoch(names: str, *words: str) -> str:
    """The table of a comment ``last epoch``."""
    records, known = _studies(names)
    methods, baselines = _split(words, 'less', known)
    return (short_table(records, [known[name] for name in methods], baselines)
            if baselines else accuracy_line(records, methods))


def tau_of_tns(names: str, *words: str) -> str:
    """The table of a comment ``tau of TNS``."""
    records, known = _studies(names)
    methods, without = _split(words, 'without', known)
    chosen = {*(methods or known)} - {*without}
    return kendall_table([r for r in records if r.method in chosen])


TABLES = {'last epoch': last_epoch, 'tau of TNS': tau_of_tns}


def _studies(names: str) -> tuple[list, dict]:
    """Of studies joined by ``+`` all records, and name -> method."""
    known = {method.name: method for method in methods_of(
        [read_study(ROOT / f'configs/studies/{name}.py')
         for name in names.split('+')])}
    return read_records(*(ROOT / f'results/{name}.jsonl'
                          for name in names.split('+'))), known


def _split(words: tuple, word: str, known: dict) -> tuple[list, list]:
    """The methods before and behind a word."""
    at = words.index(word) if word in words else len(words)
    before, behind = list(words[:at]), list(words[at + 1:])
    if unknown := {*before, *behind} - {*known}:
        raise ValueError(f'expected methods of {sorted(known)}, got '
                         f'{sorted(unknown)}; correct the comment')
    return before, behind


def check() -> None:
    """Exit with 1 and the names of what is not up to date."""
    wrong = differing_files(pages())
    for page in wrong:
        print(f'not up to date: {page.relative_to(ROOT)}')
    old = [*filter(is_old, reports())]  # which say so themselves
    sys.exit(int(bool(wrong or old)))


def update() -> None:
    """Write what is not up to date."""
    write_differing(pages(), ROOT)
    for command in filter(is_old, reports()):
        run(command, check=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        '--check', action='store_true', help='write nothing')
    args = parser.parse_args()
    try:
        check() if args.check else update()
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        parser.exit(2, f'{parser.prog}: error: {error}\n')


if __name__ == '__main__':
    main()
