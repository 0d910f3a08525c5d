"""The job around a process: its rank in it, Slurm's commands, a requeue."""
import os
import re
import subprocess
from collections.abc import Callable

#: A job in these states needs a requeue to come back.
_REQUEUED_FROM = ('RUNNING', 'PREEMPTED', 'SUSPENDED', 'TIMEOUT')


def is_first_rank() -> bool:
    """Whether what started this process, if anything did, made it rank 0.

    To be asked before there is a process group.
    """
    names = 'RANK', 'SLURM_PROCID', 'OMPI_COMM_WORLD_RANK'
    ranks = [os.environ[name] for name in names if name in os.environ]
    return ranks[:1] in ([], ['0'])


def slurm_command(*words: str) -> str:
    """The output of a command of Slurm, given word by word.

    Raises:
        RuntimeError: if it is not there or fails.
    """
    command = ' '.join(words)
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RuntimeError(
            f'{command}: expected an answer, got {error}') from None
    if done.returncode:
        raise RuntimeError(
            f'{command}: expected an answer, got {done.stderr.strip()}')
    return done.stdout


def requeue(max_requeues: int, say: Callable[[str], None]) -> None:
    """Requeue this job, unless it was cancelled or is requeued already.

    ``say`` is called with a line before the requeue: Slurm may end this
    process before ``scontrol`` returns.
    """
    job = _job()
    if job is None:
        say('no Slurm job to requeue')
        return
    before = int(os.environ.get('SLURM_RESTART_COUNT', 0))
    if before >= max_requeues:
        say(f'Slurm job {job} came back {before} times, the most that '
            'PreemptionHook.max_requeues allows: not requeued')
        return
    try:
        shown = slurm_command('scontrol', 'show', 'job', '-o', job)
        state = field_of(shown, 'JobState')
        if state not in _REQUEUED_FROM:
            say(f'Slurm job {job} is {state}: not requeued')
            return
        say(f'requeueing Slurm job {job}, {before + 1} of {max_requeues}')
        slurm_command('scontrol', 'requeue', job)
    except RuntimeError as error:
        say(f'Slurm job {job} could not be requeued: {error}')


def _job() -> str | None:
    """This job, or this task of an array.

    The number of an array's last task is that of the whole array too.
    """
    array = os.environ.get('SLURM_ARRAY_JOB_ID')
    if array is None:
        return os.environ.get('SLURM_JOB_ID')
    return f'{array}_{os.environ["SLURM_ARRAY_TASK_ID"]}'


def field_of(line: str, name: str) -> str:
    """A field of a line of ``scontrol show``."""
    found = re.search(rf'\b{name}=(\S+)', line)
    if found is None:
        raise RuntimeError(
            f'scontrol: expected a field {name}, got {line.strip()}')
    return found.group(1)
