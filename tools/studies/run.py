#!/usr/bin/env python
"""The steps of the runs of a study, which tools/studies/Snakefile orders.

python tools/studies/run.py list STUDY          # the runs without a record
python tools/studies/run.py train STUDY --run RUN    # goes on where it was
python tools/studies/run.py record STUDY --run RUN   # measures it, adds its record

Exit code: 0 if all is well, 75 if a tool was stopped and saved, 1 if one
failed, 2 if the study or its records are not as expected.
"""
import argparse
import itertools
import os
import resource
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import stepnet_mm  # noqa: F401  registers the modules that are built
from stepnet_mm.studies.outcome import (
    ablation_is_left,
    best_to_test,
    record_of,
)
from stepnet_mm.studies.progress import add_times, is_trained, missing_result
from stepnet_mm.studies.records import (
    append_record,
    check_records,
    read_records,
)
from stepnet_mm.studies.run import StudyRun, runs_of
from stepnet_mm.studies.slots import JOB, gpu_environments
from stepnet_mm.studies.study import read_study
from stepnet_mm.studies.training_log import (
    epochs_of,
    has_diverged,
    last_checkpoint,
)
from stepnet_mm.utils.command_line import printable
from stepnet_mm.utils.file_lock import LockTaken, file_lock

TOOLS = Path(__file__).resolve().parents[1]
#: Of a tool that failed.
LAST_LINES = 15
#: Exit code of a training that saved at a signal.
SAVED = 75


class ToolFailed(Exception):
    """A tool ended with an error: its exit code and last lines."""


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('step', choices=STEPS)
    parser.add_argument('study', type=Path, help='study file')
    parser.add_argument('--run', help='METHOD_seedN')
    parser.add_argument(
        '--work-dir', type=Path,
        help='folder of the runs (default: work_dirs/STUDY)')
    parser.add_argument(
        '--records', type=Path,
        help='file of the records (default: results/STUDY.jsonl)')
    parser.add_argument(
        '--methods', help='some of the methods only, joined by commas')
    parser.add_argument(
        '--data-root', help='in place of the data_root of each dataset')
    parser.add_argument(
        '--sbatch', metavar='"ARG ..."', help='run the tools as jobs of '
        'Slurm, with these arguments of sbatch')
    args = parser.parse_args()
    name = args.study.stem
    args.work_dir = args.work_dir or Path('work_dirs') / name
    args.records = args.records or Path('results') / f'{name}.jsonl'
    return args


def runs_from(args) -> list[StudyRun]:
    """The runs that the arguments choose."""
    runs = runs_of(read_study(args.study), args.work_dir.resolve())
    known = {run.method.name for run in runs}
    chosen = {*args.methods.split(',')} if args.methods else known
    if chosen - known:
        raise ValueError(f'methods: expected some of {sorted(known)}, got '
                         f'{sorted(chosen - known)}; correct the names')
    return [run for run in runs if run.method.name in chosen
            and args.run in (None, run.name)]


def list_runs(args) -> None:
    """Print the names of the runs that are left, and forget stale flags."""
    runs = runs_from(args)
    check_records(args.records, runs)
    done = {record.key for record in read_records(args.records)}
    for run in runs:
        if run.key not in done:
            print(run.name)
            flag = run.work_dir / 'done' / run.name
            flag.with_suffix('.recorded').unlink(missing_ok=True)
            if not (run.config_file.is_file() and is_trained(run)):
                flag.with_suffix('.trained').unlink(missing_ok=True)


def train(args) -> None:
    """Train a run to its end, from where it was."""
    run, = runs_from(args)
    check_records(args.records, [run])
    run.write_config()
    if is_trained(run):
        return
    words = run.config_file, '--work-dir', run.folder
    try:
        if args.sbatch:
            call(run, args, job(run, args) + [
                TOOLS / 'slurm_submit.sh', *words])
        else:
            call(run, args, [
                sys.executable, TOOLS / 'train.py', *words, '--resume'])
    except ToolFailed:
        if not has_diverged(run.folder):
            raise


def record(args) -> None:
    """Measure a trained run, and add its record."""
    run, = runs_from(args)
    if args.sbatch:
        words = [sys.executable, __file__, 'record', args.study.resolve(),
                 '--run', run.name, '--work-dir', run.work_dir, '--records',
                 args.records.resolve()]
        if args.data_root:
            words += ['--data-root', args.data_root]
        call(run, args, job(run, args) + [
            '--wrap', shlex.join(map(str, words))])
        return
    if not has_diverged(run.folder):
        if missing := missing_result(run, epochs_of(run.folder)):
            raise ValueError(missing)
        for tool, *words in measurements(run):
            call(run, args, [sys.executable, TOOLS / tool, run.config_file,
                             *words])
    found = record_of(run)
    append_record(args.records, found)
    print(f'{run.name}: ' + ('diverged' if found.last is None else
                             f'{found.metric} {found.last:.4g}'))


def measurements(run: StudyRun) -> Iterator[tuple]:
    """The tools that a trained run has still to go through, in turn."""
    weights = last_checkpoint(run.folder)
    for definition in run.study.measure['definitions']:
        yield ('analysis/measure_stiffness.py', weights, '--name', run.name,
               '--num-samples', run.study.measure['num_samples'],
               '--definition', definition, '--out',
               run.stiffness_file(definition))
    if ablation_is_left(run):
        yield ('analysis/ablate_steps.py', weights, '--work-dir',
               run.ablation_file.parent, '--out', run.ablation_file)
    if run.study.measure['robustness'] and not run.robustness_file.exists():
        yield ('analysis/robustness.py', weights, '--out',
               run.robustness_file)
    if best := best_to_test(run):
        yield 'test.py', best, '--work-dir', run.test_folder


def job(run: StudyRun, args) -> list:
    """sbatch until the end of a job; two of one run are never at work."""
    return ['sbatch', '--wait', f'--job-name={run.name}',
            '--dependency=singleton', f'--output={run.folder}/slurm.log',
            '--open-mode=append', '--ntasks=1', *shlex.split(args.sbatch)]


def call(run: StudyRun, args, command: list) -> None:
    """Run a tool to its end.

    Raises:
        ToolFailed: if it fails, or was stopped.
    """
    if args.data_root and command[0] == sys.executable or (
            'slurm_submit.sh' in str(command)):
        command = [*command, *(['--data-root', args.data_root]
                               if args.data_root else [])]
    run.folder.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    with one_gpu(run.work_dir) as gpu, open(run.log, 'ab') as log:
        place = log.tell()
        code = subprocess.call(
            [*map(str, command)], stdin=subprocess.DEVNULL, stdout=log,
            stderr=log, env=environment(gpu))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    add_times(run.folder, used.ru_utime + used.ru_stime - call.before,
              time.monotonic() - begin)
    call.before = used.ru_utime + used.ru_stime
    if code:
        lines = run.log.read_bytes()[place:].decode(errors='replace')
        raise ToolFailed(code, '\n'.join(
            [f'{run.name}: exit code {code}, {run.log}',
             *lines.splitlines()[-LAST_LINES:]]))


call.before = 0.


def environment(gpu: dict[str, str]) -> dict[str, str]:
    """A tool is no part of the job, or of the ranks, that this one is in."""
    return {**{key: value for key, value in os.environ.items()
               if key not in JOB}, **gpu, 'PYTHON': sys.executable,
            'STEPNET_MM': str(TOOLS.parent)}


@contextmanager
def one_gpu(folder: Path):
    """The variables that leave one GPU visible, the one least in use."""
    found = gpu_environments()
    if len(found) == 1:
        yield found[0]
        return
    for turn, gpu in itertools.product(itertools.count(), found):
        try:
            name = f'gpu_{gpu["CUDA_VISIBLE_DEVICES"]}_{turn}.lock'
            with file_lock(folder / name):
                yield gpu
                return
        except LockTaken:
            continue


STEPS = dict(list=list_runs, train=train, record=record)


def main():
    args = parse_args()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # The tool gets it too, saves and ends.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    try:
        STEPS[args.step](args)
    except ToolFailed as failed:
        code, text = failed.args
        print(printable(text), file=sys.stderr)
        sys.exit(SAVED if code == SAVED else 1)
    except (OSError, ValueError) as error:
        print(f'study: error: {printable(str(error))}', file=sys.stderr)
        sys.exit(2)


if __name__ == '__main__':
    main()
