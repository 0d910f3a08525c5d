#!/usr/bin/env python
"""Tables and figures of studies, of the runs that have their record.

python tools/studies/report.py STUDY                  # prints a page
python tools/studies/report.py STUDY --out PAGE       # PAGE.md and figures
python tools/studies/report.py --pages [--check]      # this repository's pages

It needs pandas, scipy and matplotlib: pip install -e ".[figures]".
With --pages each page of docs/results that was written here is written anew by
the command on it. In the READMEs and docs/results.md what lies between
``<!-- end -->`` and one of

<!-- last epoch: STUDY[+STUDY] METHOD ... [less METHOD ...] -->
<!-- mean step: STUDY[+STUDY] -->
<!-- gains: STUDY[+STUDY] -->

is a table.
"""
import stepnet_mm.utils.interrupts  # Ctrl-C from here on

import os
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import fill

from figures import title, write_figures
from intervals import pooled_sd
from records import read_records
from study_file import check_names, read_study
from tables import ABLATION, MEASURES, Report, markdown, test_column

from stepnet_mm.utils.command_line import command_parser

ROOT = Path(__file__).resolve().parents[2]
#: Whose tables --pages fills.
PAGES = ('README.md', 'README_zh-CN.md', 'docs/results.md')
#: A page's command, by which --pages writes it anew.
COMMAND = re.compile(
    r'^python tools/studies/report\.py (.*--out[ =].*)$', re.M)
TABLE = re.compile(
    r'(<!-- (last epoch|mean step|gains): (\S+)(.*?)( less .*)? -->\n)'
    r'(?:.*\n)*?(<!-- end -->)')
WRITTEN = ('Written by `tools/studies/report.py` from the records of the '
           'runs; edits are lost.')
DIFFERENCES = '''\
`{metric}` after the last epoch: mean ± standard deviation (n − 1) over n
runs. Behind a difference stands its 95 % interval: Dunnett's, of one
control and all methods of this page at once, with the standard deviation
pooled over them ({pooled}); beside an own baseline of several methods, of
these. † Welch's, of the two methods alone and not corrected: where standard
deviations do not pool, and beside an own baseline of one method. In
parentheses the bound of equivalence: a larger difference is
excluded by two one-sided t tests (5 %, the pooled standard deviation, each
method alone). TNS and NSI: total neural stiffness and mean neural stiffness
index by `{definition}` (`docs/stiffness.md`).'''
GAINS = '''\
By network: the gain over its plain one, by Dunnett's of the network's methods
alone, and StepNet minus the constant with its bound of equivalence, by the
standard deviation pooled over them.'''
FIXED = '''\
The last checkpoint, evaluated again with Δt at its mean over images and
positions: one number for each channel, or for each block. The other weights
stay as trained: a drop says what these weights need, not what adapting is
worth in training. Δt and its standard deviations (SD) are means over
modules.'''
RANKS = '''\
Kendall's τ-b and Spearman's ρ of a measure of stiffness and the last epoch;
τ over the means of the methods with a 95 % interval from a bootstrap. The runs
of one method are not independent. Within methods both are taken less the
method's mean. Without methods whose standard deviations do not pool, if these
are a minority.'''
#: Columns of the further tables, and what stands above each.
TABLES = (
    ('|'.join(ABLATION.values()), '## Step sizes held fixed', FIXED),
    ('on .*', '## On disturbed images'),
    ('test (?!epoch$).*', 'By threshold, size and class:'),
    (f'({"|".join(MEASURES.values())}), .*', '## Stiffness'),
    ('.*, stage .*', 'By stage, means over its measured blocks, by the first '
     'definition:'))


def make_parser():
    parser = command_parser(__doc__)
    add = parser.add_argument
    add('study', nargs='?', help='the study file')
    add('--beside', nargs='+', default=[], metavar='STUDY',
        help='studies whose methods it is compared with, before its own')
    add('--records', type=Path, nargs='+', default=[],
        help='files of the records (default: results/STUDY.jsonl of each)')
    add('--methods', nargs='+', default=[], help='some of the methods only')
    add('--out', type=Path, metavar='PAGE',
        help='write PAGE.md and figures/PAGE_*.png beside it (default: print '
        'the page, without figures)')
    add('--pages', action='store_true', help="this repository's pages")
    add('--check', action='store_true',
        help='write nothing, fail where a page is not what the records give')
    return parser


def page_of(report: Report, commands: Sequence[str] = (),
            figures: dict[str, str] | None = None) -> str:
    """The Markdown page; the same records give the same page.

    ``commands`` made the records and this page; ``figures`` are caption ->
    link, relative to the page.
    """
    missing = ', '.join(f'`{name}` ({report.count(name)})'
                        for name in report.methods if report.missing(name))
    diverged = ', '.join(f'`{r.method}`, seed {r.seed}'
                         for r in report.records if r.diverged)
    parts = [
        f'# {title(report)}',
        WRITTEN,
        report.subject.about.partition('\n')[2].strip(),
        '## Setting',
        '\n'.join(lines(text, '- ') for text in settings(report)),
        '\n'.join(['```bash', *commands, '```']),
        '## Results',
        verdicts(report),
        lines(DIFFERENCES.format(
            metric=report.metric,
            pooled=pooled_text(report),
            definition=next(iter(report.definitions), 'residual'))),
        report.results(report.baselines, whole=True),
        *([lines(GAINS), report.gains()] if report.networks else []),
        *further_tables(report)]
    if report.compares_stiffness:  # of fewer methods: −1 to 1
        parts += ['## Stiffness and accuracy', lines(RANKS),
                  report.correlations()]
    if figures:
        parts += ['## Figures', *(
            f'![{caption}]({link})\n\n{caption}.'
            for caption, link in figures.items())]
    if missing:
        parts += ['## Not yet run', f'Runs without a record: {missing}.']
    if diverged:
        parts += ['Diverged, and in no mean, which flatters the others of '
                  f'these methods: {diverged}.']
    return '\n\n'.join(filter(None, parts)) + '\n'


def pooled_text(report: Report) -> str:
    sd, free = pooled_sd(report.pooled['last'])
    return f'{sd:.2f}, {free} degrees of freedom' if free else 'none does'


def further_tables(report: Report) -> list[str]:
    """The tables behind that of the results, those that have numbers."""
    parts, tested = [], test_column(report.metric)
    if tested in report.frame:
        parts += ['## On test data', verdicts(report, tested),
                  'The checkpoint that validation chose, in per cent.',
                  report.results(report.baselines, column=tested)]
    for pattern, *head in TABLES:
        table = report.spreads(name for name in report.frame
                               if re.fullmatch(pattern, name)
                               and name != tested)
        if len(table):
            parts += [*map(lines, head), markdown(
                table.rename(columns=lambda name: name.removeprefix('test ')))]
    return parts


def verdicts(report: Report, column: str = 'last') -> str:
    """A line on each baseline: which methods are above it, and below."""
    return '\n'.join(lines(text, '- ') for name in report.baselines
                     if (text := report.verdict(name, column)))


def settings(report: Report) -> list[str]:
    """The circumstances of the runs."""
    records, methods = report.records, [*report.methods.values()]
    changed = ', '.join(
        f'`{key}`' if isinstance(value, (dict, list)) or any(
            method.options[key] != value for method in methods)
        else f'`{key}` {value}'
        for key, value in methods[0].options.items()
        if all(key in method.options for method in methods))
    found = [f'Changed in every config: {changed or "nothing"}.']
    if not records:
        return found
    if records[0].settings not in {s.settings for s in report.studies}:
        found.insert(0, 'The records are of other settings than the study '
                     'file has now.')
    hours = sum(r.cpu_seconds for r in records) / 3600
    dates = [r.date for r in records]
    libraries = (f'{name} {version}' for r in records
                 for name, version in r.versions.items())
    return [
        f'{len(records)} runs of {len(methods)} methods, {hours:.1f} hours of '
        f'processor time, {min(dates)} to {max(dates)}.',
        *found,
        f'Device: {distinct(r.device for r in records)}; machine: '
        f'{distinct(r.machine for r in records)}.',
        f'Versions: {distinct(libraries, ", ")}.',
        f'Commits: {distinct(r.commit for r in records)}.']


def distinct(values: Iterable[str], between: str = ' / ') -> str:
    return between.join(dict.fromkeys(values))


def lines(text: str, bullet: str = '') -> str:
    return fill(' '.join(text.split()), 78, initial_indent=bullet,
                subsequent_indent=' ' * len(bullet), break_long_words=False,
                break_on_hyphens=False)


def read(paths: Sequence, records: Sequence[Path] = (),
         names: Sequence[str] = ()) -> Report:
    """The report of study files, of which the last is the subject."""
    studies = [read_study(path) for path in paths]
    check_names('--methods', names, [
        method.name for study in studies for method in study.methods])
    for study in studies:
        study.methods = [method for method in study.methods
                         if method.name in (names or [method.name])]
    studies = [study for study in studies if study.methods]
    for path in records:
        path.stat()
    return Report(studies, read_records(*(records or [
        f'results/{study.name}.jsonl' for study in studies])))


def write(args, words: Sequence[str]) -> list[Path]:
    """Print or write a page; with --check the files that are other ones.

    ``words`` are the options as the page prints them.
    """
    paths = [*args.beside, args.study]
    report = read(paths, args.records, args.methods)
    command = shlex.join(word for word in words if word != '--check')
    commands = [*(f'bash tools/study.sh {path}' for path in paths),
                f'python tools/studies/report.py {command}']
    if args.out is None:
        print(page_of(report, commands))
        return []
    path = args.out.with_name(args.out.name.removesuffix('.md') + '.md')
    figures = write_figures(report, path.with_suffix(''), dry=args.check)
    text = page_of(report, commands, figures)
    return written({path: text}, args.check) + [
        link for link in map(path.parent.joinpath, figures.values())
        if not link.is_file()]


def written(texts: dict[Path, str], check: bool) -> list[Path]:
    """Write files; with ``check`` list those that hold another text."""
    found = [path for path, text in texts.items()
             if not path.exists() or path.read_text() != text]
    for path in found if not check else ():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(texts[path])
    return found if check else []


def pages(parser, check: bool) -> list[Path]:
    """Write this repository's pages anew; with ``check`` list the old ones."""
    os.chdir(ROOT)
    found = written({path: TABLE.sub(filled, path.read_text())
                     for path in map(Path, PAGES) if path.exists()}, check)
    for page in sorted(Path('docs/results').glob('*.md')):
        text = page.read_text()
        if WRITTEN in text and (command := COMMAND.search(text)):
            words = [*shlex.split(command[1]), *['--check'] * check]
            found += write(parser.parse_args(words), words)
    return found


def filled(comment: re.Match) -> str:
    """A table's comment with the table of the records behind it."""
    head, kind, studies, methods, controls, end = comment.groups(default='')
    report = read([f'configs/studies/{name}.py'
                   for name in studies.split('+')])
    rows, columns = methods.split(), controls.split()[1:]
    check_names(head.strip(), [*rows, *columns], report.methods)
    table = (report.by_step() if kind == 'mean step' else report.gains()
             if kind == 'gains' else report.results(columns, rows))
    return f'{head}\n{table}\n\n{end}'


def main():
    parser = make_parser()
    args = parser.parse_args()
    if bool(args.study) == args.pages or args.check and not (
            args.out or args.pages):
        parser.error('expected a study file or --pages, and --check beside '
                     '--out or --pages; add one')
    try:
        old = (pages(parser, args.check) if args.pages
               else write(args, sys.argv[1:]))
    except (OSError, ValueError) as error:
        print(f'report.py: error: {error}', file=sys.stderr)
        sys.exit(2)
    for path in old:
        print(f'not up to date: {path}')
    sys.exit(int(bool(old)))


if __name__ == '__main__':
    main()
