#!/usr/bin/env python
"""Run a study: many methods with several seeds under the same settings.

python tools/study.py plan configs/studies/cifar10_16px_table1.py
python tools/study.py run configs/studies/cifar10_16px_table1.py --jobs 2
python tools/study.py status configs/studies/cifar10_16px_table1.py

Each run is trained by tools/train.py and measured by measure_stiffness.py;
its record is one line of results/STUDY.jsonl. Stopped at any moment, by a
signal or a kill, the same command goes on where it was; what is done is not
run again, and several of these commands, on several machines too, share the
work.
"""
import argparse
import os
import signal
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from stepnet_mm.studies.progress import STATES, state_of
from stepnet_mm.studies.records import read_records
from stepnet_mm.studies.run import runs_of
from stepnet_mm.studies.runner import StudyRunner
from stepnet_mm.studies.study import read_study

TOOLS = Path(__file__).resolve().parent
COLORS = dict(running='cyan', failed='red', diverged='red', stopped='yellow',
              waiting='white', done='green')


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest='action', required=True)
    for name, text in (('plan', 'list the runs and how long they take'),
                       ('run', 'run all that are left'),
                       ('status', 'say where each run stands')):
        action = actions.add_parser(name, help=text)
        action.add_argument('study', help='study file')
        action.add_argument(
            '--work-dir', type=Path,
            help='folder of the runs (default: work_dirs/STUDY)')
        action.add_argument(
            '--records', type=Path,
            help='file of the records (default: results/STUDY.jsonl)')
        action.add_argument(
            '--methods', nargs='+', help='some of the methods only')
        if name != 'status':
            action.add_argument(
                '--jobs', type=int, help='runs at a time, on one machine '
                '(default: one, or --per-gpu for each GPU)')
            action.add_argument(
                '--per-gpu', type=int, default=1, metavar='N',
                help='runs at a time on each GPU')
        if name == 'run':
            add_run_options(action)
    add_report_options(actions.add_parser(
        'report', help='write the tables and figures of what is done'))
    return parser.parse_args()


def add_run_options(parser) -> None:
    parser.add_argument(
        '--data-root', help='folder of all datasets, in place of data_root')
    parser.add_argument(
        '--retry', action='store_true', help='try failed runs again')


def add_report_options(parser) -> None:
    parser.add_argument('study', nargs='+', help='study files that compare')
    parser.add_argument(
        '--records', type=Path, nargs='+', default=[],
        help='files of the records (default: results/STUDY.jsonl of each)')
    parser.add_argument(
        '--out', type=Path, metavar='PAGE',
        help='write PAGE.md and figures/PAGE_*.png beside it '
        '(default: print the page, without figures)')


def runs_from(args):
    """The study, the runs that the arguments choose, and those done."""
    study = read_study(args.study)
    names = [method.name for method in study.methods]
    if unknown := set(args.methods or ()) - set(names):
        raise ValueError(f'--methods: expected some of {names}, got '
                         f'{sorted(unknown)}')
    runs = [
        run for run in runs_of(
            study, args.work_dir or Path('work_dirs') / study.name)
        if run.method.name in (args.methods or names)
    ]
    done = {record.key: record for record in read_records(records_of(args))}
    return study, runs, done


def records_of(args) -> Path:
    return args.records or Path('results') / f'{Path(args.study).stem}.jsonl'


def slots_of(args) -> tuple:
    """How many runs at a time, and the environment of each."""
    import torch
    gpus = torch.cuda.device_count()
    jobs = args.jobs or max(gpus, 1) * args.per_gpu
    return jobs, [{'CUDA_VISIBLE_DEVICES': str(i)} for i in range(gpus)] or [
        {}]


def plan(args) -> None:
    study, runs, done = runs_from(args)
    jobs, _ = slots_of(args)
    table = Table('run', 'config', 'state', 'time')
    left = 0.
    for run in runs:
        run.config()  # an option that does not fit is named here
        state, seconds = state_of(run, done), expected(run, done)
        if state.state not in ('done', 'diverged'):
            left += max(seconds - state.seconds, 0)
        table.add_row(run.name, str(run.method.config), state.state,
                      clock(seconds))
    Console().print(table)
    print(f'{len(runs)} runs, {len(done)} records; left: {clock(left)} of '
          f'single runs, {clock(left / jobs)} with {jobs} at a time')


def expected(run, done) -> float:
    """How long a run takes, in s: as those done, or as the study says."""
    for runs in ([r for r in done.values() if r.method == run.method.name],
                 [*done.values()]):
        if runs:
            return sum(r.wall_seconds for r in runs) / len(runs)
    return run.study.seconds or 0.


def clock(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f'{minutes // 60}:{minutes % 60:02d} h' if seconds else 'unknown'


def status(args) -> None:
    study, runs, done = runs_from(args)
    states = [(run, state_of(run, done)) for run in runs]
    states.sort(key=lambda pair: STATES.index(pair[1].state))
    table = Table('run', 'state', 'epochs', study.metric, 'ran', 'left', '')
    for run, state in states:
        share = state.epochs / state.total if state.total else 0
        left = state.seconds / share - state.seconds if share else 0
        table.add_row(
            run.name,
            f'[{COLORS[state.state]}]{state.state}[/]',
            f'{state.epochs}/{state.total}' if state.total else '',
            f'{state.metric:.2f}' if state.metric is not None else '',
            clock(state.seconds) if state.seconds else '',
            clock(left) if left else '',
            state.note.splitlines()[-1] if state.note else '')
    Console().print(table)
    counts = [f'{sum(s.state == name for _, s in states)} {name}'
              for name in STATES]
    print(', '.join(counts))


def run(args) -> None:
    study, runs, done = runs_from(args)
    jobs, environments = slots_of(args)
    runner = StudyRunner(
        tools=TOOLS,
        records=records_of(args),
        data_root=args.data_root,
        jobs=jobs,
        environments=environments,
        threads=max((os.cpu_count() or 1) // jobs, 1),
        retry=args.retry)
    caught = []

    def stop(number, frame):
        caught.append(number)
        runner.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    runner.run([r for r in runs if r.key not in done])
    if caught:
        sys.exit(128 + caught[0])


def report(args) -> None:
    from make_configs import paper_figure

    from stepnet_mm.studies.page import methods_of, study_page
    from stepnet_mm.visualization.study_figures import write_figures
    studies = [read_study(path) for path in args.study]
    files = args.records or [
        Path('results') / f'{study.name}.jsonl' for study in studies]
    records = read_records(*files)
    names = [method.name for method in methods_of(studies)]
    if args.out and args.out.suffix == '.md':
        args.out = args.out.with_suffix('')
    page = study_page(
        studies, records, paper_figure, commands_of(args),
        write_figures(records, names, args.out) if args.out else {})
    if args.out is None:
        print(page)
        return
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.with_name(f'{args.out.name}.md').write_text(page)


def commands_of(args) -> list[str]:
    """What made the records, and this page."""
    options = [f'--out {path_text(args.out)}'] if args.out else []
    if args.records:
        options.append('--records ' + ' '.join(map(path_text, args.records)))
    paths = [path_text(path) for path in args.study]
    return [*(f'python tools/study.py run {path}' for path in paths),
            ' '.join(['python tools/study.py report', *paths, *options])]


def path_text(path) -> str:
    """A path for a page: relative, or without folders of this machine."""
    path = Path(path)
    return os.path.relpath(path) if path.resolve().is_relative_to(
        Path.cwd()) else path.name


def main():
    args = parse_args()
    dict(plan=plan, run=run, status=status, report=report)[args.action](args)


if __name__ == '__main__':
    main()
