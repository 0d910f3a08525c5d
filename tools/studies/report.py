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
from pathlib import Path
from textwrap import fill

from study_figures import write_figures
from study_file import check_names, read_study
from study_records import read_records
from study_tables import ABLATION, MEASURES, Report, markdown

from stepnet_mm.utils.command_line import (
    check_output,
    command_parser,
    printable,
)
from stepnet_mm.utils.files import differing_files

ROOT = Path(__file__).resolve().parents[2]
#: Whose tables --pages fills.
PAGES = ('README.md', 'README_zh-CN.md', 'docs/results.md')
#: The command on a page that --pages writes anew.
COMMAND = re.compile(r'^python tools/studies/report\.py (.* --out .*)$', re.M)
TABLE = re.compile(r'(<!-- (last epoch|tau|mean step): (.*?) -->\n).*?'
                   r'(<!-- end -->)', re.S)
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
    parser = command_parser(__doc__)
    parser.add_argument('study', nargs='*', help='study files that compare')
    parser.add_argument(
        '--records', type=Path, nargs='+', default=[],
        help='files of the records (default: results/STUDY.jsonl of each)')
    parser.add_argument(
        '--methods', nargs='+', default=[], help='some of the methods only')
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


def page_of(report: Report, commands: Sequence[str] = (),
            figures: dict[str, str] | None = None, title: str = '') -> str:
    """The Markdown page; the same records give the same page.

    Args:
        report (Report): the tables.
        commands (sequence[str]): that made the records and this page.
        figures (dict): caption -> link, relative to the page.
        title (str): its heading. Default: the names of the studies.
    """
    names = ', '.join(study.name for study in report.studies)
    missing = [f'`{name}` ({report.count(name)})' for name in report.methods
               if report.missing(name)]
    diverged = [f'`{r.method}`, seed {r.seed}' for r in report.records
                if r.diverged]
    parts = [
        f'# {title or names}', WRITTEN,
        *(study.about for study in report.studies),
        '## Setting', '\n'.join(lines(text, '- ') for text
                                in settings(report)),
        '\n'.join(['```bash', *commands, '```']),
        '## Results', lines(DIFFERENCES.format(
            metric=report.metric, pooled=report.pooled_sd(),
            definition=next(iter(report.definitions), 'residual'))),
        report.results(report.baselines, whole=True),
        *tables(report),
        *(['## Figures'] if figures else []),
        *(f'![{caption}]({link})\n\n{caption}.'
          for caption, link in (figures or {}).items())]
    if missing:
        parts.append('## Not yet run\n\nRuns without a record: '
                     f'{", ".join(missing)}.')
    if diverged:
        parts.append('Diverged, and in no mean, which flatters the others of '
                     f'these methods: {", ".join(diverged)}.')
    return '\n\n'.join(filter(None, parts)) + '\n'


def tables(report: Report) -> list[str]:
    """The further tables that the records give, with their headings."""
    found: list[str] = []
    for names, *head in (
            (ABLATION.values(), '## Step sizes held fixed', lines(FIXED)),
            ([name for name in report.frame if name.startswith('on ')],
             '## On disturbed images'),
            ([name for name in report.frame if name.startswith('test ')
              and name != 'test epoch'], '## On test data',
             'The checkpoint that validation chose.'),
            ([f'{text}, {name}' for name in report.definitions
              for text in MEASURES.values()], '## Stiffness'),
            ([name for name in report.frame if ', stage ' in name],
             'By stage, means over its measured blocks, by the first '
             'definition:')):
        table = report.spreads(names)
        if len(table):
            found += [*head, markdown(table)]
    if report.definitions:
        found += ['## Stiffness and accuracy', lines(TAU),
                  report.taus(measures=tuple(MEASURES))]
    return found


def settings(report: Report) -> list[str]:
    """The circumstances of the runs."""
    records, methods = report.records, list(report.methods.values())
    changed = ', '.join(
        f'`{key}`' if isinstance(value, (dict, list)) else f'`{key}` {value}'
        for key, value in methods[0].options.items()
        if all(key in method.options for method in methods))
    found = [f'Changed in every config: {changed or "nothing"}.']
    if not records:
        return found
    if not {r.settings for r in records} <= {
            s.settings for s in report.studies}:
        found.insert(0, 'The records are of other settings than the study '
                     'file has now.')
    hours = sum(r.cpu_seconds for r in records) / 3600
    dates = [r.date for r in records]
    versions = dict.fromkeys(
        f'{name} {version}' for r in records
        for name, version in r.versions.items())
    return [
        f'{len(records)} runs of {len(methods)} methods, {hours:.1f} hours of '
        f'processor time, {min(dates)} to {max(dates)}.',
        *found,
        f'Device: {distinct(r.device for r in records)}; machine: '
        f'{distinct(r.machine for r in records)}.',
        f'Versions: {", ".join(versions)}.',
        f'Commits: {distinct(r.commit for r in records)}.']


def distinct(values: Iterable[str]) -> str:
    return ' / '.join(dict.fromkeys(values))


def lines(text: str, bullet: str = '') -> str:
    return fill(' '.join(text.split()), 78, initial_indent=bullet,
                subsequent_indent=' ' * len(bullet), break_long_words=False,
                break_on_hyphens=False)


def read(paths: Sequence, records: Sequence[Path] = (),
         names: Sequence[str] = ()) -> Report:
    """The report of study files, of all methods or some.

    Raises:
        ValueError: if there is no such method or file of records.
    """
    studies = [read_study(path) for path in paths]
    check_names('--methods', names, [
        method.name for study in studies for method in study.methods])
    if absent := [str(path) for path in records if not path.is_file()]:
        raise ValueError('--records: expected files of records, got '
                         f'{", ".join(absent)}, which are not there; correct '
                         'the paths')
    report = Report(studies, [], names)
    files = records or [Path('results') / f'{study.name}.jsonl'
                        for study in report.studies]
    if not any(path.exists() for path in files):
        print('report.py: no records in ' + ', '.join(map(str, files)),
              file=sys.stderr)
    return Report(studies, read_records(*files), names)


def write(args) -> int:
    """Print or write a page; with --check 1 where it is another one."""
    report = read(args.study, args.records, args.methods)
    if args.out is None:
        print(page_of(report, commands_of(args, report)), flush=True)
        return 0
    path = args.out.with_name(args.out.name.removesuffix('.md') + '.md')
    figures = write_figures(report, path.with_suffix(''), dry=args.check)
    texts = {path: page_of(report, commands_of(args, report), figures,
                           path.stem)}
    if args.check:
        return not_up_to_date(texts, [
            path.parent / link for link in figures.values()])
    check_output('--out', path, [*args.records, *args.study])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(texts[path])
    return 0


def not_up_to_date(texts: dict[Path, str], figures: Iterable[Path]) -> int:
    """Name the files that differ or are gone; 1 where there are any."""
    found = [*differing_files(texts),
             *(path for path in figures if not path.is_file())]
    for path in found:
        print(f'not up to date: {path_text(path)}')
    return int(bool(found))


def commands_of(args, report: Report) -> list[str]:
    """The commands that made the records, and this page."""
    studies = [path_text(study.path) for study in report.studies]
    words = ['python tools/studies/report.py', *studies]
    for option, given in (('--methods', args.methods),
                          ('--records', args.records),
                          ('--out', [args.out] if args.out else [])):
        words += [option, *map(path_text, given)] if given else []
    return [*(f'bash tools/study.sh {path}' for path in studies),
            ' '.join(words)]


def path_text(path) -> str:
    """A path for a page: relative, or without folders of this machine."""
    path = Path(path)
    return os.path.relpath(path) if path.resolve().is_relative_to(
        Path.cwd()) else path.name


def pages(parser: argparse.ArgumentParser, check: bool) -> int:
    """Write this repository's pages anew; with ``check`` 1 where they differ.

    Raises:
        ValueError: if a comment names a study or method that is not there.
    """
    os.chdir(ROOT)
    own = {path: TABLE.sub(filled, path.read_text())
           for path in map(Path, PAGES) if path.exists()}
    texts = [path.read_text() for path
             in sorted(Path('docs/results').glob('*.md'))]
    commands = [COMMAND.search(text) for text in texts if WRITTEN in text]
    codes = [write(parser.parse_args(
        [*shlex.split(command[1]), *['--check'] * check]))
        for command in commands if command]
    if check:
        return max(not_up_to_date(own, []), *codes)
    for path in differing_files(own):
        print(f'writing {path}')
        path.write_text(own[path])
    return 0


def filled(comment: re.Match) -> str:
    """A table's comment with the table of the records behind it."""
    head, kind, words, end = comment.groups()
    before, *behind = re.split(' (?:less|without) ', f'{words} ', maxsplit=1)
    studies, *methods = before.split()
    others = ' '.join(behind).split()
    try:
        report = read([f'configs/studies/{name}.py'
                       for name in studies.split('+')])
        check_names('methods', [*methods, *others], report.methods)
    except (OSError, ValueError) as error:
        raise ValueError(f'{head.strip()}: {error}') from error
    if kind == 'last epoch':
        table = report.results(others, methods)
    elif kind == 'mean step':
        table = report.by_step()
    else:
        table = report.taus({*(methods or report.methods)} - {*others})
    return f'{head}\n{table}\n\n{end}'


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
