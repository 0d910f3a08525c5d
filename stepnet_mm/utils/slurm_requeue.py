"""Slurm: its commands, a requeue, the starts of a job."""
import os
import re
import subprocess
from collections.abc import Callable

#: A job in these states needs a requeue to come back.
_REQUEUED_FROM = ('RUNNING', 'PREEMPTED', 'SUSPENDED', 'TIMEOUT')


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

    Args:
        max_requeues (int): the most requeues of a job.
        say (callable): is called with a line before the requeue: Slurm may
            end this process before ``scontrol`` returns.
    """
    job = _job()
    if job is None:
        say('no Slurm job to requeue')
        return
    before = int(os.environ.get('SLURM_RESTART_COUNT', 0))
    try:
        if refusal := _refusal(job, before, max_requeues):
            say(refusal)
        else:
            say(f'requeueing Slurm job {job}, {before + 1} of {max_requeues}')
            slurm_command('scontrol', 'requeue', job)
    except RuntimeError as error:
        say(f'Slurm job {job} could not be requeued: {error}')


def _refusal(job: str, before: int, max_requeues: int) -> str:
    """Why a job is not requeued; '' if it may be."""
    if before >= max_requeues:
        return (f'Slurm job {job} came back {before} times, the most that '
                'PreemptionHook.max_requeues allows: not requeued')
    shown = slurm_command('scontrol', 'show', 'job', '-o', job)
    state = field_of(shown, 'JobState')
    if state not in _REQUEUED_FROM:
        return f'Slurm job {job} is {state}: not requeued'
    return ''


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


def start_of_job() -> dict:
    """``job`` and ``restarts`` of the Slurm job around; empty if none is."""
    if 'SLURM_JOB_ID' not in os.environ:
        return {}
    return dict(job=os.environ['SLURM_JOB_ID'],
                restarts=int(os.environ.get('SLURM_RESTART_COUNT', 0)))


def is_earlier_start(other: dict) -> bool:
    """Whether another :func:`start_of_job` is of this job, and earlier."""
    this, restarts = start_of_job(), other.get('restarts')
    return (bool(this) and other.get('job') == this['job']
            and isinstance(restarts, int) and restarts < this['restarts'])
