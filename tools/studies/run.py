#!/usr/bin/env python
"""The runs of a study, one after the other; tools/study.sh orders them.

python tools/studies/run.py STUDY list            # the runs without a record
python tools/studies/run.py STUDY loop            # train, measure, record them
python tools/studies/run.py STUDY loop --run RUN  # one of them

A run goes on where it was. Exit code: 0 if all is well, 75 if it was stopped
and goes on the next time, 1 if a run failed, 2 if the study or its records are
not as expected.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path

import study_outcome as outcome
import study_records as records
from study_file import StudyRun, check_names, read_study, runs_of

import stepnet_mm  # noqa: F401  registers the modules that are built
from stepnet_mm.utils.command_line import command_parser, printable
from stepnet_mm.utils.file_lock import LockTaken, file_lock, lock_holder

TOOLS = Path(__file__).resolve().parents[1]
#: Of a tool that failed.
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
    parser.add_argument('step', choices=('list', 'loop'))
    parser.add_argument('--run', help='METHOD_seedN')
    parser.add_argument('--trained', action='store_true',
                        help='measure and record only')
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
    args.data_root = ['--data-root', args.data_root] * bool(args.data_root)
    return args


def runs_left(args) -> list[StudyRun]:
    """The chosen runs without a record, all of which can begin or go on.

    Raises:
        ValueError: if there is no such method or run, the records were made
            under other settings, or a run was begun with another config, or
            would log its evaluations without their iteration.
    """
    runs = runs_of(read_study(args.study), args.work_dir)
    methods = args.methods.split(',') if args.methods else []
    check_names('methods', methods, {run.method.name for run in runs})
    check_names('run', filter(None, [args.run]), [run.name for run in runs])
    runs = [run for run in runs if run.name == (args.run or run.name)
            and (not methods or run.method.name in methods)]
    recorded = records.located_records(args.records)
    done = {record.name for _, record in recorded}
    left = [run for run in runs if run.name not in done]
    for run in left:
        run.check_config()
        check_log(run)
    try:
        records.check_comparable([*recorded, *(
            (f'{args.study}: {run.name}', records.planned(run))
            for run in runs)])
    except ValueError:
        for run in runs:
            run.check_config()  # says more, where the run was begun
        raise
    return left


def check_log(run: StudyRun) -> None:
    """Check that evaluations are logged with their iteration.

    Raises:
        ValueError: if all would be those of epoch 0, as mmengine logs them.
    """
    cfg = run.config()
    logger = (cfg.get('default_hooks') or {}).get('logger') or {}
    if (cfg.get('train_cfg') or {}).get('max_iters') and logger.get(
            'log_metric_by_epoch', True):
        raise ValueError(
            f'methods.{run.method.name}: default_hooks.logger.'
            'log_metric_by_epoch: expected False in a training that counts '
            'iterations, got True; set it')


def state(run: StudyRun) -> str:
    """Of a run without a record."""
    if holder := holder_of(run):
        return f'at work, {holder}'
    if not run.config_file.is_file():
        return 'not begun'
    return 'trained' if outcome.is_trained(run) else 'begun'


def holder_of(run: StudyRun) -> str:
    """The process at work in a run's folder, also of a killed engine."""
    for lock in sorted(run.folder.rglob('*.lock')):
        with suppress(FileExistsError):  # another program's
            if holder := lock_holder(lock):
                return holder
    return ''


def carry_out(run: StudyRun, args) -> None:
    """Train, measure and record a run, from where it was."""
    done = records.read_records(args.records)
    if run.name in {record.name for record in done}:
        return  # by an engine that this one waited for
    run.write_config()
    if not (args.trained or outcome.is_trained(run)):
        print(f'{run.name}: training', flush=True)
        words = (run.config_file, '--work-dir', run.folder, *args.data_root)
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
        words = (sys.executable, TOOLS / 'studies/run.py', args.study,
                 'loop', '--trained', '--run', run.name, '--work-dir',
                 run.work_dir, '--records', args.records, *args.data_root)
        submit(run, args, '--wrap', shlex.join(map(str, words)))
        return
    if not outcome.has_diverged(run):
        outcome.evaluations(run)  # without any there is nothing to measure
        for tool, *options in measurements(run):
            call(run, sys.executable, TOOLS / tool, run.config_file, *options,
                 *args.data_root)
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
    if (measure['ablate_steps'] and not run.ablation_file.exists()
            and outcome.has_steps(run)):
        yield ('analysis/ablate_steps.py', weights, '--work-dir',
               run.ablation_file.parent, '--out', run.ablation_file)
    if measure['robustness'] and not run.robustness_file.exists():
        yield ('analysis/robustness.py', weights, '--out',
               run.robustness_file)
    best = outcome.best_checkpoint(run)
    if best and outcome.has_test_data(run) and not outcome.tested(run):
        yield 'test.py', best, '--work-dir', run.folder / 'test'


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
    own = {key: value for key, value in os.environ.items() if key not in JOB}
    # slurm_submit.sh is run as a copy, from elsewhere.
    own.update(PYTHON=sys.executable, STEPNET_MM=str(TOOLS.parent))
    begin = time.monotonic()
    with gpu as variables, open(run.log, 'a+b', opener=no_link) as log:
        place = log.tell()
        if STOPS:
            raise RunStopped
        process = subprocess.Popen(
            [*map(str, command)], stdin=subprocess.DEVNULL, stdout=log,
            stderr=log, env={**own, **variables})
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = code = os.waitstatus_to_exitcode(status)
        log.seek(place)
        lines = log.read().decode(errors='replace').splitlines()
    outcome.add_times(run.folder, cpu_seconds=usage.ru_utime + usage.ru_stime,
              wall_seconds=time.monotonic() - begin)
    if STOPS or code == SAVED:
        raise RunStopped
    if code:
        how = signal.Signals(-code).name if code < 0 else f'exit code {code}'
        raise ToolFailed('\n'.join([f'{how}, {run.log}',
                                    *lines[-LAST_LINES:]]))


def no_link(path: str, flags: int) -> int:
    """Open a file of a work dir, which may have come from elsewhere."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


@contextmanager
def one_gpu(folder: Path) -> Iterator[dict[str, str]]:
    """The variables of one visible GPU, the one that fewest runs are on."""
    import torch
    count = torch.cuda.device_count()
    visible = os.environ.get('CUDA_VISIBLE_DEVICES') or ','.join(
        map(str, range(count)))
    names = [name.strip() for name in visible.split(',')[:count]]
    with ExitStack() as held:
        slot = 0
        while names:
            with suppress(LockTaken):
                held.enter_context(file_lock(folder / f'gpu{slot}.lock'))
                break
            slot += 1
        yield (dict(CUDA_VISIBLE_DEVICES=names[slot % len(names)])
               if names else {})


def wait_for(run: StudyRun) -> None:
    """Wait until no process of a killed engine is at work in its folder.

    Raises:
        RunStopped: if a signal came before.
    """
    said = ''
    while holder := holder_of(run):
        if holder != said:
            print(f'{run.name}: waits for {holder}', flush=True)
        said = holder
        if STOPS:
            raise RunStopped
        time.sleep(1)


def attempt(run: StudyRun, args) -> int:
    """Carry out a run; the exit code."""
    # Slurm keeps the jobs of a run apart.
    lock = nullcontext() if args.sbatch else file_lock(run.folder / 'run.lock')
    try:
        run.folder.mkdir(parents=True, exist_ok=True)
        if not args.sbatch:
            wait_for(run)
        with lock:
            carry_out(run, args)
        return 0
    except RunStopped:
        print(f'{run.name}: stopped, the next call goes on', file=sys.stderr)
        return SAVED
    except (OSError, ValueError, ToolFailed, LockTaken) as error:
        print(f'{run.name}: failed: {printable(str(error))}', file=sys.stderr)
        return 1


def loop(args) -> int:
    """Carry out all runs that are left; a failed one stops no other."""
    codes = [0]
    for run in runs_left(args):
        codes.append(attempt(run, args))
        if codes[-1] == SAVED:
            break
    return max(codes)


def main():
    args = parse_args()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup sets it
            signal.signal(number, lambda number, _: STOPS.append(number))
    try:
        if args.step != 'list':
            sys.exit(loop(args))
        for run in runs_left(args):
            print(f'{run.name}: {printable(state(run))}')
    except (OSError, ValueError) as error:
        print(f'study: error: {printable(str(error))}', file=sys.stderr)
        sys.exit(2)


if __name__ == '__main__':
    main()
