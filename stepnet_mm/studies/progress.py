"""Where the runs of a study stand, from what is on the disk."""
import json
from dataclasses import dataclass
from pathlib import Path

from mmengine.config import Config

from ..utils.file_lock import LockTaken, file_lock
from ..utils.files import written_whole
from .run import StudyRun
from .training_log import epochs_of, iteration_of

#: In this order: what is shown first.
STATES = ('running', 'failed', 'diverged', 'stopped', 'waiting', 'done')


@dataclass
class RunState:
    """Where one run stands.

    Attributes:
        state (str): one of :data:`STATES`.
        epochs (int): how many are done.
        total (int): of how many.
        metric (float | None): after the last one that was evaluated.
        seconds (float): how long it ran so far, without killed pieces.
        note (str): why it failed, or who runs it.
    """
    state: str
    epochs: int
    total: int
    metric: float | None = None
    seconds: float = 0.
    note: str = ''


def state_of(run: StudyRun, done: dict) -> RunState:
    """Where a run stands.

    Args:
        run (StudyRun): the run.
        done (dict): key of a run -> its record, of those that are done.
    """
    record = done.get(run.key)
    if record is not None:
        return RunState('diverged' if record.diverged else 'done',
                        len(record.epochs), len(record.epochs), record.last,
                        record.wall_seconds)
    cfg = _begun_config(run)
    total = cfg.train_cfg.get('max_epochs', 0) if cfg else 0
    epochs = epochs_of(run.folder)
    values = [e[run.study.metric] for e in epochs if run.study.metric in e]
    state = RunState('waiting', len(values), total,
                     values[-1] if values else None,
                     times_of(run.folder)['wall_seconds'])
    holder = _holder(run)
    if holder:
        state.state, state.note = 'running', holder
    elif (note := failure_of(run)):
        state.state, state.note = 'failed', note
    elif epochs or iteration_of(run.folder):
        state.state = 'stopped'
    return state


def lock_of(run: StudyRun) -> Path:
    """The file that a runner holds while a run is its own."""
    return run.folder / 'runner.lock'


def failure_of(run: StudyRun) -> str:
    """Why a run failed, in its last lines; empty if it did not."""
    path = run.folder / 'failed.txt'
    return path.read_text(errors='replace') if path.is_file() else ''


def write_failure(run: StudyRun, text: str) -> None:
    """Note why a run failed; empty to have it tried again."""
    path = run.folder / 'failed.txt'
    if text:
        with written_whole(path) as file:
            file.write(text.encode())
    else:
        path.unlink(missing_ok=True)


def times_of(folder: Path) -> dict[str, float]:
    """``cpu_seconds`` and ``wall_seconds`` of a run's pieces so far."""
    path = folder / 'times.json'
    try:
        return json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return dict(cpu_seconds=0., wall_seconds=0.)


def add_times(folder: Path, cpu: float, wall: float) -> None:
    """Add a piece of a run, in s."""
    times = times_of(folder)
    with written_whole(folder / 'times.json') as file:
        file.write(json.dumps(dict(
            cpu_seconds=times['cpu_seconds'] + cpu,
            wall_seconds=times['wall_seconds'] + wall)).encode())


def _begun_config(run: StudyRun) -> Config | None:
    if not run.config_file.is_file():
        return None
    return Config.fromfile(str(run.config_file))


def _holder(run: StudyRun) -> str:
    if not lock_of(run).is_file():
        return ''
    try:
        with file_lock(lock_of(run), note=False):
            return ''
    except LockTaken as taken:
        return str(taken)
