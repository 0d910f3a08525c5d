#!/usr/bin/env python
"""Trains, measures and records the runs of a study; study.sh orders them.

python tools/studies/runs.py STUDY WORK_DIR RECORDS            # what is left
python tools/studies/runs.py STUDY WORK_DIR RECORDS --run RUN  # carries it out

A run is trained, measured and recorded, from where it was; study.sh keeps
others out of it. Exit code: 0 if all is well, 75 if it was stopped and goes
on the next time, 1 if it failed, 2 if the study or its records are not as
expected.
"""
import stepnet_mm.utils.interrupts  # Ctrl-C from here on

import fcntl
import itertools
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import outcome
import records
import torch
from study_file import StudyRun, check_names, read_study, runs_of

import stepnet_mm  # registers the modules that are built
from stepnet_mm.launch.entry import build_model
from stepnet_mm.steps.base import step_sizes_of
from stepnet_mm.utils.command_line import command_parser

TOOLS = Path(__file__).resolve().parents[1]
#: Printed of a tool that failed.
LAST_LINES = 15
#: Exit code of a training that saved at a signal.
SAVED = 75
#: A tool is no part of the Slurm job, or of the ranks, that this one is in:
#: it would put that job back into the queue.
JOB = ('SLURM_JOB_ID', 'SLURM_ARRAY_JOB_ID', 'SLURM_PROCID',
       'SLURM_STEP_NUM_TASKS', 'RANK', 'WORLD_SIZE')
#: The signals that came so far; the tools get them too, save and end.
STOPS: list[int] = []


class ToolFailed(Exception):
    """A tool ended with an error; its last lines."""


class RunStopped(Exception):
    """A signal came; the next call goes on."""


def parse_args():
    parser = command_parser(__doc__)
    parser.add_argument('study', type=Path, help='study file')
    parser.add_argument('work_dir', type=Path, help='folder of the runs')
    parser.add_argument('records', type=Path, help='file of the records')
    parser.add_argument('--run', help='METHOD_seedN, to carry out')
    parser.add_argument('--methods', help='some only, joined by commas')
    parser.add_argument(
        '--data-root', help='in place of the data_root of each dataset')
    parser.add_argument(
        '--sbatch', metavar='"ARG ..."', help='run the tools as jobs of '
        'Slurm, with these arguments of sbatch')
    return parser.parse_args()


def runs_left(args) -> list[StudyRun]:
    """The chosen runs without a record, all of which can begin or go on."""
    runs = runs_of(read_study(args.study), args.work_dir)
    methods = args.methods.split(',') if args.methods else []
    check_names('methods', methods, {run.method.name for run in runs})
    check_names('run', [args.run] if args.run else [],
                [run.name for run in runs])
    runs = [run for run in runs if run.name == (args.run or run.name)
            and (not methods or run.method.name in methods)]
    for run in runs:
        run.check_config()
    recorded = records.located_records(args.records)
    records.check_comparable([*recorded, *(
        (f'{args.study}: {run.name}', records.planned(run)) for run in runs)])
    done = {record.name for _, record in recorded}
    return [run for run in runs if run.name not in done]


def carry_out(run: StudyRun, args) -> None:
    """Train, measure and record a run, from where it was."""
    data = ['--data-root', args.data_root] if args.data_root else []
    run.folder.mkdir(parents=True, exist_ok=True)
    run.write_config()
    if not args.sbatch:
        take_gpu(args.work_dir)
    if not outcome.is_trained(run):
        print(f'{run.name}: training', flush=True)
        words = (run.config_file, '--work-dir', run.folder, *data)
        try:
            if args.sbatch:
                submit(run, args, TOOLS / 'slurm_submit.sh', *words)
            else:
                call(run, sys.executable, TOOLS / 'train.py', *words,
                     '--resume')
        except ToolFailed:
            if not outcome.has_diverged(run):
                raise
    print(f'{run.name}: measuring', flush=True)
    if args.sbatch:
        words = (sys.executable, TOOLS / 'studies/runs.py', args.study,
                 args.work_dir, args.records, '--run', run.name, *data)
        submit(run, args, '--wrap', shlex.join(map(str, words)))
        return
    if not outcome.has_diverged(run):
        outcome.evaluations(run)  # without any there is nothing to measure
        for tool, *options in measurements(run):
            call(run, sys.executable, TOOLS / tool, run.config_file, *options,
                 *data)
    record = outcome.record_of(run)
    records.append_record(args.records, record)
    print(f'{run.name}: ' + ('diverged' if record.diverged else
                             f'{record.metric} {record.last:.4g}'), flush=True)


def measurements(run: StudyRun) -> Iterator[tuple]:
    """The tools that a trained run has still to go through, in turn."""
    weights, measure = outcome.last_checkpoint(run.folder), run.study.measure
    for definition in measure['definitions']:
        yield ('analysis/measure_stiffness.py', weights, '--name', run.name,
               '--num-samples', measure['num_samples'], '--definition',
               definition, '--out', run.stiffness_file(definition))
    steps = run.ablation_file
    if (measure['ablate_steps'] and not steps.exists()
            and step_sizes_of(build_model(run.config(), start=False))):
        yield ('analysis/ablate_steps.py', weights, '--work-dir',
               steps.parent, '--out', steps)
    best = outcome.best_checkpoint(run)
    if best and outcome.has_test_data(run) and not outcome.test_of(run):
        yield 'test.py', best, '--work-dir', run.folder / 'test'


def submit(run: StudyRun, args, *words) -> None:
    """Call sbatch until the end of a job; two of one run never run at once."""
    call(run, 'sbatch', '--wait', f'--job-name={run.study.name}.{run.name}',
         '--dependency=singleton', f'--output={run.log}',
         '--open-mode=append', '--ntasks=1', *shlex.split(args.sbatch),
         *words)


def call(run: StudyRun, *command) -> None:
    """Run a tool, or a job, to its end."""
    own = {key: value for key, value in os.environ.items() if key not in JOB}
    # slurm_submit.sh is run as a copy, from elsewhere.
    own.update(PYTHON=sys.executable, STEPNET_MM=str(TOOLS.parent))
    with open(run.log, 'a+b') as log:
        place, before = log.tell(), os.times()
        if STOPS:
            raise RunStopped
        code = subprocess.run(
            [*map(str, command)], stdin=subprocess.DEVNULL, stdout=log,
            stderr=log, env=own,
            # So that it holds the locks on run and GPU, to its end.
            close_fds=False).returncode
        after = os.times()
        log.seek(place)
        lines = log.read().decode(errors='replace').splitlines()
    outcome.add_times(
        run, wall_seconds=after.elapsed - before.elapsed,
        cpu_seconds=sum(after[2:4]) - sum(before[2:4]))
    if STOPS or code == SAVED:
        raise RunStopped
    if code:
        how = signal.Signals(-code).name if code < 0 else f'exit code {code}'
        raise ToolFailed('\n'.join([f'{how}, {run.log}',
                                    *lines[-LAST_LINES:]]))


def take_gpu(folder: Path) -> None:
    """Leave one GPU visible, that which fewest runs are on, if there are any.

    This process and those that it starts hold the place on it.
    """
    count = torch.cuda.device_count()
    visible = os.environ.get('CUDA_VISIBLE_DEVICES') or ','.join(
        map(str, range(count)))
    names = [name.strip() for name in visible.split(',')[:count]]
    for slot in itertools.count() if names else ():
        lock = os.open(folder / f'gpu{slot}.lock', os.O_RDWR | os.O_CREAT)
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.set_inheritable(lock, True)
            os.environ['CUDA_VISIBLE_DEVICES'] = names[slot % len(names)]
            return
        os.close(lock)


def main():
    args = parse_args()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup sets it
            signal.signal(number, lambda number, _: STOPS.append(number))
    try:
        for run in runs_left(args):
            if args.run:
                carry_out(run, args)
            else:
                print(f'{run.name}: {outcome.progress(run)}')
    except RunStopped:
        print(f'{args.run}: stopped, the next call goes on', file=sys.stderr)
        sys.exit(SAVED)
    except (OSError, ValueError, ToolFailed) as error:
        print(f'{args.run or "study"}: failed: {error}', file=sys.stderr)
        sys.exit(1 if args.run else 2)


if __name__ == '__main__':
    main()
