#!/usr/bin/env python
"""The steps of a study's runs, which tools/study.sh and its Snakefile order.

python tools/studies/run.py STUDY list              # the runs without a record
python tools/studies/run.py STUDY train --run RUN   # goes on where it was
python tools/studies/run.py STUDY record --run RUN  # measures, adds a record
python tools/studies/run.py STUDY loop              # all of them in turn

Exit code: 0 if all is well, 75 if it was stopped and goes on the next time, 1
if a run failed, 2 if the study or its records are not as expected.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import argparse
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from study_file import StudyRun, check_names, read_study, runs_of
from study_outcome import (
    ablation_is_left,
    add_times,
    best_to_test,
    check_result,
    has_diverged,
    is_trained,
    last_checkpoint,
    record_of,
)
from study_records import append_record, check_records, read_records

import stepnet_mm  # noqa: F401  registers the modules that are built
from stepnet_mm.utils.command_line import printable
from stepnet_mm.utils.file_lock import (
    TRAINING_LOCK,
    LockTaken,
    file_lock,
    lock_beside,
    lock_holder,
)

TOOLS = Path(__file__).resolve().parents[1]
#: Of a tool that failed.
LAST_LINES = 15
#: Exit code of a training that saved at a signal.
SAVED = 75
#: In s, between two looks at whether a run is free.
PAUSE = 1.
#: A tool is no part of the Slurm job, or of the ranks, that this one is in:
#: it would put that job back into the queue.
JOB = ('SLURM_JOB_ID', 'SLURM_ARRAY_JOB_ID', 'SLURM_PROCID',
       'SLURM_STEP_NUM_TASKS', 'RANK', 'WORLD_SIZE')
#: The signals that came so far; the tools get them too, save and end.
STOPS: list[int] = []


class ToolFailed(Exception):
    """A tool ended with an error, and its last lines."""


class RunStopped(Exception):
    """A signal came; the next call goes on."""


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('study', type=Path, help='study file')
    parser.add_argument('step', choices=('list', 'loop', *STEPS))
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
    """The runs that the arguments choose.

    Raises:
        ValueError: if there is no such method or run, or the records were
            made under other settings.
    """
    runs = runs_of(read_study(args.study), args.work_dir)
    methods = args.methods.split(',') if args.methods else []
    check_names('methods', methods, sorted({r.method.name for r in runs}))
    check_names('run', [args.run] * bool(args.run),
                sorted(run.name for run in runs))
    runs = [run for run in runs if run.name == (args.run or run.name)
            and (not methods or run.method.name in methods)]
    check_records(args.records, runs)
    return runs


def runs_left(args) -> list[StudyRun]:
    """Those without a record, all of which can begin or go on.

    Raises:
        ValueError: as :func:`runs_from`, or if a run was begun with another
            config, or would log its evaluations without their iteration.
    """
    done = {record.key for record in read_records(args.records)}
    runs = [run for run in runs_from(args) if run.key not in done]
    for run in runs:
        _check_log(run, run.checked_config())
    return runs


def _check_log(run: StudyRun, cfg) -> None:
    logger = (cfg.get('default_hooks') or {}).get('logger') or {}
    if (cfg.get('train_cfg') or {}).get('max_iters') and logger.get(
            'log_metric_by_epoch', True):
        raise ValueError(
            f'methods.{run.method.name}: default_hooks.logger.'
            'log_metric_by_epoch: expected False in a training that counts '
            'iterations, got True, which logs every evaluation as that of '
            'epoch 0; set it')


def list_runs(args) -> int:
    """Print each run that is left, and where it stands."""
    for run in runs_left(args):
        print(f'{run.name}: {printable(where(run))}')
    return 0


def where(run: StudyRun) -> str:
    """Where a run without a record stands."""
    if holder := holder_of(run):
        return f'at work, {holder}'
    if not run.config_file.is_file():
        return 'not begun'
    return 'trained' if is_trained(run) else 'begun'


def holder_of(run: StudyRun) -> str:
    """Who trains or measures a run, also where its engine was killed."""
    measured = [*map(run.stiffness_file, run.study.measure['definitions']),
                run.ablation_file, run.robustness_file]
    locks = [lock_of(run), run.folder / TRAINING_LOCK,
             *map(lock_beside, measured)]
    return next(filter(None, map(lock_holder, locks)), '')


def lock_of(run: StudyRun) -> Path:
    """Held while a step of a run is at work."""
    return run.folder / 'step.lock'


def train(run: StudyRun, args) -> None:
    """Train a run to its end, from where it was."""
    run.write_config()
    if is_trained(run):
        return
    print(f'{run.name}: training', flush=True)
    words = run.config_file, '--work-dir', run.folder, *data_root(args)
    try:
        if args.sbatch:
            submit(run, args, TOOLS / 'slurm_submit.sh', *words)
        else:
            call(run, sys.executable, TOOLS / 'train.py', *words, '--resume')
    except ToolFailed:
        if not has_diverged(run):
            raise


def record(run: StudyRun, args) -> None:
    """Measure a trained run, and add its record."""
    if any(found.key == run.key for found in read_records(args.records)):
        return
    print(f'{run.name}: measuring', flush=True)
    if args.sbatch:
        words = [sys.executable, TOOLS / 'studies/run.py', args.study,
                 'record', '--run', run.name, '--work-dir', run.work_dir,
                 '--records', args.records, *data_root(args)]
        submit(run, args, '--wrap', shlex.join(map(str, words)))
        return
    if not has_diverged(run):
        check_result(run)
        for tool, *words in measurements(run):
            call(run, sys.executable, TOOLS / tool, run.config_file, *words,
                 *data_root(args))
    found = record_of(run)
    append_record(args.records, found)
    print(f'{run.name}: ' + ('diverged' if found.last is None else
                             f'{found.metric} {found.last:.4g}'), flush=True)


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


def data_root(args) -> list[str]:
    return ['--data-root', args.data_root] if args.data_root else []


def submit(run: StudyRun, args, *words) -> None:
    """Call sbatch until the end of a job; two of one run never run at once."""
    call(run, 'sbatch', '--wait', f'--job-name={run.study.name}.{run.name}',
         '--dependency=singleton', f'--output={run.log}',
         '--open-mode=append', '--ntasks=1', *shlex.split(args.sbatch),
         *words)


def call(run: StudyRun, *command) -> None:
    """Run a tool, or a job, to its end.

    Raises:
        ToolFailed: if it fails.
        RunStopped: if a signal came.
    """
    gpu = nullcontext({}) if command[0] == 'sbatch' else one_gpu(run.work_dir)
    begin = time.monotonic()
    with gpu as variables, open(run.log, 'ab', opener=no_link) as log:
        place = log.tell()
        if STOPS:
            raise RunStopped
        process = subprocess.Popen(
            [*map(str, command)], stdin=subprocess.DEVNULL, stdout=log,
            stderr=log, env=environment(variables))
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = code = os.waitstatus_to_exitcode(status)
    add_times(run.folder, usage.ru_utime + usage.ru_stime,
              time.monotonic() - begin)
    if STOPS or code == SAVED:
        raise RunStopped
    if code:
        raise ToolFailed(f'{described(code)}, {run.log}\n'
                         f'{last_lines(run.log, place)}')


def no_link(path: str, flags: int) -> int:
    """Open a file of a work dir, which may have come from elsewhere."""
    if os.path.islink(path):
        raise FileExistsError(f'{path}: expected a log or no file, got a '
                              'link; move it away')
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def described(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f'exit code {code}'


def last_lines(path: Path, begin: int) -> str:
    """The end of what was written from a place in a log on."""
    with open(path, 'rb') as file:
        file.seek(begin)
        lines = file.read().decode(errors='replace').splitlines()
    return '\n'.join(lines[-LAST_LINES:])


def environment(variables: dict[str, str]) -> dict[str, str]:
    """Of a tool; Slurm's jobs need to know where they are called from."""
    own = {key: value for key, value in os.environ.items() if key not in JOB}
    return dict(own, **variables, PYTHON=sys.executable,
                STEPNET_MM=str(TOOLS.parent))


def gpus() -> list[dict[str, str]]:
    """The variables that leave one GPU visible, of those that are."""
    import torch
    count = torch.cuda.device_count()
    visible = os.environ.get('CUDA_VISIBLE_DEVICES')
    names = visible.split(',') if visible else map(str, range(count))
    return [{'CUDA_VISIBLE_DEVICES': name.strip()}
            for name, _ in zip(names, range(count))]


@contextmanager
def one_gpu(folder: Path) -> Iterator[dict[str, str]]:
    """The variables of one GPU, the one that fewest runs are on."""
    found = gpus()
    with ExitStack() as held:
        turn = place = 0
        while found:
            turn, place = divmod(turn * len(found) + place, len(found))
            with suppress(LockTaken):
                held.enter_context(file_lock(
                    folder / f'gpu{place}_{turn}.lock'))
                break
            place += 1
        yield found[place] if found else {}


@contextmanager
def alone(run: StudyRun, args) -> Iterator[None]:
    """Wait for what outlived a killed engine; Slurm does it for its jobs.

    Raises:
        RunStopped: if a signal came before.
    """
    run.folder.mkdir(parents=True, exist_ok=True)
    if args.sbatch:
        yield
        return
    said = ''
    while holder := holder_of(run):
        if holder != said:
            print(f'{run.name}: waits for {holder}', flush=True)
        said = holder
        if STOPS:
            raise RunStopped
        time.sleep(PAUSE)
    with file_lock(lock_of(run)):
        yield


def attempt(step, run: StudyRun, args) -> int:
    """Take a step of a run; the exit code."""
    try:
        with alone(run, args):
            step(run, args)
        return 0
    except RunStopped:
        print(f'{run.name}: stopped, the next call goes on', file=sys.stderr)
        return SAVED
    except (OSError, ValueError, ToolFailed, LockTaken) as error:
        print(f'{run.name}: {step.__name__} failed: {printable(str(error))}',
              file=sys.stderr)
        return 1


def loop(args) -> int:
    """Take all steps of all runs that are left; a failed one stops none."""
    code = 0
    for run in runs_left(args):
        found = attempt(train, run, args) or attempt(record, run, args)
        if found == SAVED:
            return SAVED
        code = code or found
    return code


#: Of one run.
STEPS: dict[str, Any] = dict(train=train, record=record)


def main():
    args = parse_args()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup sets it
            signal.signal(number, lambda number, _: STOPS.append(number))
    try:
        if args.step in STEPS:
            run, = runs_from(args)
            sys.exit(attempt(STEPS[args.step], run, args))
        sys.exit(dict(list=list_runs, loop=loop)[args.step](args))
    except (OSError, ValueError) as error:
        print(f'study: error: {printable(str(error))}', file=sys.stderr)
        sys.exit(2)


if __name__ == '__main__':
    main()
