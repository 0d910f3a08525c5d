#!/usr/bin/env python
"""Tables and figures of studies, of the runs that have their record.

python tools/studies/report.py STUDY                  # prints a page
python tools/studies/report.py STUDY ... --out PAGE   # PAGE.md and figures
python tools/studies/report.py --pages [--check]      # this repository's pages

It needs pandas, scipy and matplotlib: pip install 'stepnet_mm[figures]'.
With --pages each page of docs/results that was written here is written anew by
the command on it. In README.md and docs/results.md what lies between
``<!-- end -->`` and one of

<!-- last epoch: STUDY[+STUDY] METHOD ... [less METHOD ...] -->
<!-- tau: STUDY[+STUDY] [METHOD ...] [without METHOD ...] -->
<!-- mean step: STUDY[+STUDY] -->

is a table.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import argparse
import os
import re
import shlex
import signal
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import fill

from study_figures import write_figures
from study_file import baselines_of, check_names, methods_of, read_study
from study_records import read_records
from study_tables import ABLATION, MEASURES, Report, markdown, spreads

from stepnet_mm.utils.command_line import check_output, printable
from stepnet_mm.utils.files import differing_files, write_differing

ROOT = Path(__file__).resolve().parents[2]
#: Whose tables --pages fills.
PAGES = ('README.md', 'README_zh-CN.md', 'docs/results.md')
#: The command on a page that --pages writes anew.
COMMAND = re.compile(r'^python tools/studies/report\.py (.* --out .*)$', re.M)
WRITTEN = ('Written by `tools/studies/report.py` from the records of the '
           'runs; edits are lost.')
DIFFERENCES = '''\
`{metric}` after the last epoch: mean ± standard deviation (n − 1) over n
runs. Behind a difference stands its 95 % interval: Dunnett's, of one
control and all methods at once, with the standard deviation pooled over
them ({pooled}). † Welch's, of the two methods alone and not corrected:
where standard deviations do not pool, and beside a method's own baseline.
An interval with 0 in it shows neither a difference nor equality; equality
is shown to within its ends. TNS and NSI: total neural stiffness and mean
neural stiffness index by `{definition}` (`docs/stiffness.md`).'''
FIXED = '''\
The last checkpoint, evaluated again with Δt at its mean over images and
positions: one number for each channel, or for each block. The other weights
stay as trained: a drop says what these weights need, not what adapting is
worth in training. Δt and its standard deviations (SD) are means over
modules.'''
TAU = '''\
Kendall's τ-b of a measure of stiffness and the last epoch; over the means
of the methods with a 95 % interval from a bootstrap. The runs of one method
are not independent. Within methods both are taken less the method's mean.'''


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('study', nargs='*', help='study files that compare')
    parser.add_argument(
        '--records', type=Path, nargs='+',
        help='files of the records (default: results/STUDY.jsonl of each)')
    parser.add_argument(
        '--methods', nargs='+', help='some of the methods only')
    parser.add_argument(
        '--out', type=Path, metavar='PAGE',
        help='write PAGE.md and figures/PAGE_*.png beside it '
        '(default: print the page, without figures)')
    parser.add_argument(
        '--pages', action='store_true',
        help="write this repository's pages anew")
    parser.add_argument(
        '--check', action='store_true',
        help='write nothing, fail where a page is not what the records give')
    return parser


def page_of(report: Report, commands: Sequence[str],
            figures: dict[str, str], title: str) -> str:
    """The Markdown page; the same records give the same page.

    Args:
        report (Report): what the records give.
        commands (sequence[str]): that made the records and this page.
        figures (dict): caption -> link, relative to the page.
        title (str): its heading; empty for the names of the studies.
    """
    names = ', '.join(study.name for study in report.studies)
    parts = [
        f'# {title or names}', WRITTEN,
        *(study.about for study in report.studies),
        '## Setting', bullets(settings(report)),
        '\n'.join(['```bash', *commands, '```']),
        '## Results', lines(DIFFERENCES.format(
            metric=report.metric, pooled=report.pooled_sd(),
            definition=next(iter(report.definitions), 'residual'))),
        report.results(baselines_of(report.studies), whole=True),
        *tables(report),
        *(['## Figures'] if figures else []),
        *(f'![{caption}]({link})\n\n{caption}.'
          for caption, link in figures.items()),
        *unfinished(report)]
    return '\n\n'.join(filter(None, parts)) + '\n'


def tables(report: Report) -> list[str]:
    """The further tables that the records give, with their headings."""
    frame, digits = report.frame, report.digits
    found: list[str] = []

    def add(columns, places, *head):
        shown = [name for name in columns
                 if name in frame and frame[name].notna().any()]
        if shown:
            found.extend([*head, markdown(spreads(frame, shown, places))])

    level = {name: 3 if 'Δt' in name or 'SD' in name else digits
             for name in ABLATION.values()}
    add(ABLATION.values(), level, '## Step sizes held fixed', lines(FIXED))
    add([n for n in frame if n.startswith('on ')], digits,
        '## On disturbed images')
    add([n for n in frame if n.startswith('test ')], digits,
        '## On test data', 'The checkpoint that validation chose.')
    add([f'{text}, {name}' for name in report.definitions
         for text in MEASURES.values()], 3, '## Stiffness')
    add([n for n in frame if ', stage ' in n], 3,
        'By stage, means over its measured blocks, by the first definition:')
    if report.definitions:
        found += ['## Stiffness and accuracy', lines(TAU),
                  report.taus(measures=tuple(MEASURES))]
    return found


def settings(report: Report) -> list[str]:
    """What the runs were made with."""
    records, methods = report.records, list(report.methods.values())
    options = {key: value for key, value in methods[0].options.items()
               if all(key in method.options for method in methods)}
    changed = ', '.join(
        f'`{key}`' if isinstance(value, (dict, list)) else f'`{key}` {value}'
        for key, value in options.items())
    found = [f'Changed in every config: {changed or "nothing"}.']
    if not records:
        return found
    if not {r.settings for r in records} <= {
            s.settings for s in report.studies}:
        found.insert(0, 'The records are of other settings than the study '
                     'file has now.')
    hours = sum(r.cpu_seconds for r in records) / 3600
    versions = dict.fromkeys(
        f'{name} {version}' for r in records
        for name, version in r.versions.items())
    return [
        f'{len(records)} runs of {len(methods)} methods, {hours:.1f} hours of '
        'processor time, '
        f'{min(r.date for r in records)} to {max(r.date for r in records)}.',
        *found,
        f'Device: {distinct(r.device for r in records)}; machine: '
        f'{distinct(r.machine for r in records)}.',
        f'Versions: {", ".join(versions)}.',
        f'Commits: {distinct(r.commit for r in records)}.']


def distinct(values: Iterable[str]) -> str:
    return ' / '.join(dict.fromkeys(values))


def unfinished(report: Report) -> list[str]:
    """What has no record, or diverged."""
    absent = [f'`{name}` ({report.count(name)})' for name in report.methods
              if report.missing(name)]
    diverged = [f'`{r.method}`, seed {r.seed}' for r in report.records
                if r.diverged]
    return [f'{text}: {", ".join(names)}.' for text, names in (
        ('## Not yet run\n\nRuns without a record', absent),
        ('Diverged, and in no mean, which flatters the others of these '
         'methods', diverged)) if names]


def bullets(texts: Iterable[str]) -> str:
    return '\n'.join(lines(text, '- ', '  ') for text in texts)


def lines(text: str, first: str = '', other: str = '') -> str:
    return fill(' '.join(text.split()), 78, initial_indent=first,
                subsequent_indent=other, break_long_words=False,
                break_on_hyphens=False)


def read(paths: Sequence, records: Sequence[Path] = (),
         names: Sequence[str] | None = None) -> Report:
    """The report of study files, of all methods or some.

    Raises:
        ValueError: if there is no such method or file of records.
    """
    studies = [read_study(path) for path in paths]
    known = [method.name for method in methods_of(studies)]
    check_names('--methods', names or (), known)
    if absent := [str(path) for path in records if not path.is_file()]:
        raise ValueError('--records: expected files of records, got '
                         f'{", ".join(absent)}, which are not there; correct '
                         'the paths')
    if names:
        studies = [study for study in (
            replace(study, methods=[m for m in study.methods
                                    if m.name in names])
            for study in studies) if study.methods]
    files = records or [Path('results') / f'{s.name}.jsonl' for s in studies]
    if not any(path.exists() for path in files):
        print('report.py: no records in ' + ', '.join(map(str, files)),
              file=sys.stderr)
    return Report(studies, read_records(*files))


def write(args) -> int:
    """Print or write a page; with --check 1 where it is another one."""
    report = read(args.study, args.records or (), args.methods)
    out = args.out and args.out.with_name(args.out.name.removesuffix('.md'))
    title = out.name if out else ''
    figures = write_figures(report, out, dry=args.check) if out else {}
    page = page_of(report, commands_of(args, report, out), figures, title)
    if out is None:
        print(page, flush=True)
        return 0
    path = out.with_name(f'{out.name}.md')
    if args.check:
        gone = [link for link in figures.values()
                if not (path.parent / link).is_file()]
        return not_up_to_date({path: page, **{
            path.parent / link: 'a figure' for link in gone}})
    check_output('--out', path, [*(args.records or ()), *args.study])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page)
    return 0


def not_up_to_date(pages: dict[Path, str]) -> int:
    """Name the files that differ; 1 where there are any."""
    for path in (found := differing_files(pages)):
        print(f'not up to date: {path_text(path)}')
    return int(bool(found))


def commands_of(args, report: Report, out: Path | None) -> list[str]:
    """What made the records, and this page."""
    paths = [path_text(study.path) for study in report.studies]
    command = ['python tools/studies/report.py', *paths]
    for name in 'methods', 'records':
        if given := getattr(args, name):
            command += [f'--{name}', *map(path_text, given)]
    command += [f'--out {path_text(out)}'] if out else []
    return [*(f'bash tools/study.sh {path}' for path in paths),
            ' '.join(command)]


def path_text(path) -> str:
    """A path for a page: relative, or without folders of this machine."""
    path = Path(path)
    return os.path.relpath(path) if path.resolve().is_relative_to(
        Path.cwd()) else path.name


def pages(parser: argparse.ArgumentParser, check: bool) -> int:
    """Write this repository's pages anew; with ``check`` 1 where they differ.

    Raises:
        ValueError: if a comment names what is not there.
    """
    os.chdir(ROOT)
    own = {path: with_tables(path) for path in map(Path, PAGES)
           if path.exists()}
    commands = [found[1] for path in sorted(Path('docs/results').glob('*.md'))
                if (found := COMMAND.search(text := path.read_text()))
                and WRITTEN in text]
    old = [write(parser.parse_args(
        [*shlex.split(command), *['--check'] * check]))
        for command in commands]
    if check:
        return max(not_up_to_date(own), *old, 0)
    write_differing(own, Path())
    return 0


def with_tables(page: Path) -> str:
    """A page's text, with its tables as the records have them."""
    return re.sub(
        rf'(<!-- ({"|".join(TABLES)}): (.*?) -->\n).*?(<!-- end -->)',
        _filled, page.read_text(), flags=re.S)


def _filled(found: re.Match) -> str:
    head, kind, what, end = found.groups()
    studies, *words = what.split()
    names = studies.split('+')
    try:
        report = read([f'configs/studies/{name}.py' for name in names])
        before, behind = split(words)
        check_names('methods', [*before, *behind], report.methods)
        return f'{head}\n{TABLES[kind](report, before, behind)}\n\n{end}'
    except (OSError, ValueError) as error:
        raise ValueError(f'{head.strip()}: {error}') from error


def split(words: list[str]) -> tuple[list[str], list[str]]:
    """What stands before ``less`` or ``without``, and behind it."""
    at = min((words.index(word) for word in ('less', 'without')
              if word in words), default=len(words))
    return words[:at], words[at + 1:]


TABLES = {
    'last epoch': lambda report, methods, less: report.results(less, methods),
    'mean step': lambda report, methods, _: report.by_step(),
    'tau': lambda report, methods, without: report.taus(
        {*(methods or report.methods)} - {*without})}


def main():
    parser = make_parser()
    args = parser.parse_args()
    if bool(args.study) == args.pages:
        parser.error('expected study files or --pages, got '
                     f'{"both" if args.study else "neither"}')
    if args.check and not (args.out or args.pages):
        parser.error('--check: expected --out PAGE or --pages beside it, got '
                     'none; add the page to compare')
    try:
        sys.exit(pages(parser, args.check) if args.pages else write(args))
    except BrokenPipeError:  # head has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except (OSError, ValueError) as error:
        print(f'report.py: error: {printable(str(error))}', file=sys.stderr)
        sys.exit(2)


if __name__ == '__main__':
    main()
