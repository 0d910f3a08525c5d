#!/usr/bin/env python
"""Run a study: many methods with several seeds under the same settings.

python tools/study.py plan configs/studies/cifar10_16px_modules.py
python tools/study.py run configs/studies/cifar10_16px_modules.py --jobs 2
python tools/study.py status configs/studies/cifar10_16px_modules.py --watch

Each run is trained by tools/train.py, measured by measure_stiffness.py and,
where the study says so, ablate_steps.py; its record is one line of
results/STUDY.jsonl. Stopped at any moment, by a signal or a kill, the same
command goes on where it was; what is done is not run again, and several of
these commands, on several machines too, share the work.
docs/studies.md has more.

Exit code: 0 if all is well, 1 if a run failed or was killed, none could be
submitted or a page is not up to date, 2 if the study cannot run or go on,
128 + N after signal N (0 where Ctrl-C ends `status --watch`).
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import argparse
import os
import re
import shlex
import signal
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.table import Table

import stepnet_mm  # noqa: F401  registers the modules that checks build
from stepnet_mm.config_path import config_path
from stepnet_mm.studies.checkpoints import (
    delete_checkpoints,
    spare_checkpoints,
)
from stepnet_mm.studies.checks import check_runs
from stepnet_mm.studies.progress import state_of
from stepnet_mm.studies.records import check_records, read_records
from stepnet_mm.studies.run import runs_of
from stepnet_mm.studies.runner import StudyRunner
from stepnet_mm.studies.slots import gpu_environments, threads_of_each
from stepnet_mm.studies.slurm_array import NothingToSubmit, SlurmArray
from stepnet_mm.studies.study import absent_baselines, methods_of, read_study
from stepnet_mm.studies.view import (
    expected_time,
    progress_table,
    time_left,
)
from stepnet_mm.utils.command_line import (
    check_output,
    clock,
    positive,
    printable,
)
from stepnet_mm.utils.files import differing_files

TOOLS = Path(__file__).resolve().parent
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest='action', required=True)
    for name, (_, text, *adders) in ACTIONS.items():
        action = actions.add_parser(name, help=text, description=text)
        for add in adders:
            add(action)
    return parser.parse_args()


def add_common_options(parser) -> None:
    parser.add_argument('study', help='study file')
    parser.add_argument(
        '--work-dir', type=Path,
        help='folder of the runs (default: work_dirs/STUDY)')
    parser.add_argument(
        '--records', type=Path,
        help='file of the records (default: results/STUDY.jsonl)')
    add_methods_option(parser)


def add_methods_option(parser) -> None:
    parser.add_argument(
        '--methods', nargs='+', help='some of the methods only')


def add_plan_options(parser) -> None:
    add_machine_options(parser)


def add_machine_options(parser) -> None:
    parser.add_argument(
        '--jobs', type=positive, metavar='N', help='runs at a time, on one '
        'machine (default: one, or --per-gpu on each GPU)')
    parser.add_argument(
        '--per-gpu', type=positive, default=1, metavar='N',
        help='runs at a time on each GPU')
    parser.add_argument(
        '--data-root', help='in place of the data_root of each dataset')
    parser.add_argument(
        '--check', action='store_true',
        help='look for the data and build each model, as run does')


def add_run_options(parser) -> None:
    add_machine_options(parser)
    parser.add_argument(
        '--retry', action='store_true', help='try failed runs again')
    parser.add_argument(
        '--trained', action='store_true',
        help='train nothing, measure and record what is trained')
    parser.add_argument(
        '--slurm', metavar='PARTITION',
        help='submit the runs to Slurm, at most --jobs of them at a time')
    parser.add_argument(
        '--sbatch-args', default='', metavar='"ARG ..."',
        help='further arguments of sbatch, such as "--gres=gpu:1 --time=600"')


def add_status_options(parser) -> None:
    parser.add_argument(
        '--watch', action='store_true', help='again and again, until Ctrl-C')


def add_clean_options(parser) -> None:
    parser.add_argument(
        '--dry-run', action='store_true', help='delete nothing, list them')


def add_report_options(parser) -> None:
    parser.add_argument('study', nargs='+', help='study files that compare')
    parser.add_argument(
        '--records', type=Path, nargs='+', default=[],
        help='files of the records (default: results/STUDY.jsonl of each)')
    add_methods_option(parser)
    parser.add_argument(
        '--out', type=Path, metavar='PAGE',
        help='write PAGE.md and figures/PAGE_*.png beside it '
        '(default: print the page, without figures)')
    parser.add_argument(
        '--check', action='store_true',
        help='write nothing, fail where PAGE.md is not what the records give')


def runs_from(args):
    """The runs that the arguments choose."""
    study, = studies_from(args, [args.study])
    return runs_of(study, args.work_dir or Path('work_dirs') / study.name)


def studies_from(args, paths):
    """Study files, with the methods that the arguments choose."""
    studies = [read_study(path) for path in paths]
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


def records_of(args) -> Path:
    return args.records or Path('results') / f'{Path(args.study).stem}.jsonl'


def done_of(args):
    """A run's key -> its first record; other machines may have more."""
    records = read_records(records_of(args))
    return {record.key: record for record in reversed(records)}


def plan(args):
    runs, done = runs_from(args), done_of(args)
    check_records(records_of(args), runs)
    if args.check:
        check_runs(runs, args.data_root)
    jobs = args.jobs or len(gpu_environments()) * args.per_gpu
    table = Table('run', 'config', 'state', 'time')
    seconds = 0.
    for run in runs:
        state = state_of(run, done)
        seconds += time_left(run, state, done)
        table.add_row(run.name, str(run.method.config), state.state,
                      clock(state.seconds if state.is_over else
                            expected_time(run, done)))
    console().print(table)
    print(f'{len(runs)} runs, {len(done)} records; left: {clock(seconds)} of '
          f'single runs, {clock(seconds / jobs)} with {jobs} at a time')
    absent = [] if args.methods else absent_baselines(runs[0].study)
    if absent:
        print(f'{args.study} compares with {", ".join(absent)}, which it does '
              'not have: report it together with the study that does.')


def status(args) -> int:
    runs = runs_from(args)
    check_records(records_of(args), runs[:1])
    watching = args.watch and sys.stdout.isatty()
    caught = stop_on_signals(lambda: None) if watching else []
    with shown(args, runs, args.watch):
        while watching and not caught:
            time.sleep(.2)
    return 128 + caught[0] if caught and caught[0] != signal.SIGINT else 0


@contextmanager
def shown(args, runs, live: bool = True):
    """The progress of the runs: at the end, on a terminal all the time.

    Yields:
        callable: it prints a line, above the progress.
    """
    screen = console()

    def table():
        return progress_table(runs, done_of(args))

    if not (live and screen.is_terminal):
        yield lambda line: print(line, flush=True)
        return screen.print(table())
    with Live(get_renderable=table, console=screen, refresh_per_second=.5,
              vertical_overflow='visible'):
        yield partial(screen.print, markup=False, highlight=False)


def console() -> Console:
    """A pipe or a file has no width of its own, and no lines to draw over.

    In Jupyter, FORCE_COLOR would make it a terminal.
    """
    terminal = sys.stdout.isatty()
    return Console(width=None if terminal else 120, force_terminal=terminal)


def run(args):
    if args.slurm and args.trained:
        raise ValueError('--trained: expected without --slurm, which trains, '
                         'got both; leave out one of them')
    runs, records = runs_from(args), records_of(args)
    check_records(records, runs)
    done = done_of(args)
    left = [run for run in runs if run.key not in done]
    if not args.trained:
        check_runs(left, args.data_root)
    if not left:
        print(f'{records} has all runs; another --records and --work-dir make '
              'them anew')
        return 0
    if args.slurm:
        return submit(args, left)
    environments = gpu_environments()
    jobs = args.jobs or len(environments) * args.per_gpu
    with shown(args, runs) as say:
        runner = StudyRunner(
            TOOLS, records, args.data_root, jobs, environments,
            threads_of_each(jobs), args.retry, args.trained,
            lambda line: write(say, line))
        caught = stop_on_signals(runner.stop)
        failed = runner.run(left)
    return 128 + caught[0] if caught else int(bool(failed))


def write(say, line: str) -> None:
    with suppress(OSError):  # the terminal may be gone
        say(printable(line))


def stop_on_signals(stop: Callable[[], None]) -> list[int]:
    """Have signals stop something; the list takes what comes."""
    caught: list[int] = []

    def take(number, frame):
        caught.append(number)
        stop()

    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup sets it
            signal.signal(number, take)
    return caught


def submit(args, runs) -> int:
    """Submit the runs to Slurm; the exit code."""
    work_dir = runs[0].work_dir
    measuring = [
        sys.executable, TOOLS / 'study.py', 'run', Path(args.study).resolve(),
        '--work-dir', work_dir.resolve(), '--records',
        records_of(args).resolve(), '--trained'
    ]
    if args.data_root:
        measuring += ['--data-root', args.data_root]
    array = SlurmArray(TOOLS, work_dir, args.slurm, args.jobs,
                       shlex.split(args.sbatch_args), args.data_root,
                       args.retry)
    try:
        print(array.submit(runs, list(map(str, measuring))))
    except NothingToSubmit as nothing:
        print(nothing)
        return 1
    return 0


def clean(args) -> None:
    runs = runs_from(args)
    check_records(records_of(args), runs)
    spare = spare_checkpoints(runs, done_of(args))
    total = 0
    for name, files in spare.items():
        size = sum(path.stat().st_size for path in files)
        total += size
        print(f'{name}: {", ".join(path.name for path in files)}, '
              f'{size / 2**20:.1f} MiB')
        if not args.dry_run:
            delete_checkpoints(files)
    print(f'{"to delete" if args.dry_run else "deleted"}: {len(spare)} runs\' '
          f'checkpoints, {total / 2**20:.1f} MiB; each method keeps its best')


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
    studies = studies_from(args, args.study)
    files = record_files(args, studies)
    records = read_records(*files)

    from stepnet_mm.studies.page import study_page
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
    return [*(f'python tools/study.py run {path}' for path in paths),
            ' '.join(['python tools/study.py report', *paths, *options])]


def path_text(path) -> str:
    """A path for a page: relative, or without folders of this machine."""
    path = Path(path)
    return os.path.relpath(path) if path.resolve().is_relative_to(
        Path.cwd()) else path.name


#: Name -> what does it, its help, what adds its options.
ACTIONS = dict(
    plan=(plan, 'list the runs and how long they take',
          add_common_options, add_plan_options),
    run=(run, 'run all that are left', add_common_options, add_run_options),
    status=(status, 'say where each run stands', add_common_options,
            add_status_options),
    clean=(clean, 'delete the checkpoints of runs that have a record, except '
           "those of each method's best", add_common_options,
           add_clean_options),
    report=(report, 'write the tables and figures of what is done',
            add_report_options))


def main():
    args = parse_args()
    try:
        sys.exit(ACTIONS[args.action][0](args))
    except BrokenPipeError:  # head has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except (OSError, RuntimeError, ValueError) as error:
        print(f'study.py: error: {printable(str(error))}', file=sys.stderr)
        sys.exit(2)


if __name__ == '__main__':
    main()
