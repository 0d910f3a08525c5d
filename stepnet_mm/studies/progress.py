"""Where the runs of a study stand, from what is on the disk."""
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..utils.file_lock import TRAINING_LOCK, lock_beside, lock_holder
from ..utils.files import written_whole
from .records import StudyRecord
from .run import StudyRun, begun_config
from .training_log import (
    epochs_of,
    fraction_of,
    has_diverged,
    is_finished,
    logs_of,
    seconds_of,
)

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
        fraction (float): of its iterations that are done, 0 to 1.
        seconds (float): how long it ran so far.
        note (str): why it failed, who runs it, or that the study's metric is
            not evaluated.
    """
    state: str
    epochs: int = 0
    total: int = 0
    metric: float | None = None
    fraction: float = 0.
    seconds: float = 0.
    note: str = ''

    @property
    def is_over(self) -> bool:
        """Whether it has its record."""
        return self.state in ('done', 'diverged')


def state_of(run: StudyRun,
             done: Mapping[tuple[str, int], StudyRecord]) -> RunState:
    """Where a run stands.

    Args:
        run (StudyRun): the run.
        done (mapping): key of a run -> its record, of those that are done.
    """
    record = done.get(run.key)
    if record is not None:
        epochs = len([e for e in record.epochs if record.metric in e])
        return RunState('diverged' if record.diverged else 'done', epochs,
                        epochs, record.last, 1., record.wall_seconds)
    state, note = _state(run)
    if not run.config_file.is_file():
        return RunState(state, note=note)
    total = _epochs_in(run.config_file)
    logged = epochs_of(run.folder)
    values = results_of(run, logged)
    return RunState(state, len(values), total, values[-1] if values else None,
                    fraction_of(run.folder, total), seconds_of(run.folder),
                    wrong_metric(run, logged) or note)


def results_of(run: StudyRun, epochs: list[dict]) -> list[float | None]:
    """The study's metric in the order of its evaluations; None if not finite.

    Args:
        run (StudyRun): the run.
        epochs (list[dict]): of :func:`.epochs_of`.
    """
    metric = run.study.metric
    return [epoch[metric] for epoch in epochs if metric in epoch]


def wrong_metric(run: StudyRun, epochs: list[dict]) -> str:
    """What to tell where a run evaluated something, not the study's metric.

    Args:
        run (StudyRun): the run.
        epochs (list[dict]): of :func:`.epochs_of`.
    """
    known = {key for epoch in epochs for key in epoch}
    evaluated = sorted(key for key in known if '/' in key)
    if not evaluated or run.study.metric in known:
        return ''
    return (f'{run.study.path}: metric: expected one of {evaluated}, got '
            f'{run.study.metric!r}; correct it')


def missing_result(run: StudyRun, epochs: list[dict]) -> str:
    """What to tell where a run that is trained has no number at its end.

    Args:
        run (StudyRun): the run, trained to its end.
        epochs (list[dict]): of :func:`.epochs_of`.
    """
    if wrong := wrong_metric(run, epochs):
        return wrong
    values = results_of(run, epochs)
    if values and values[-1] is not None:
        return ''
    got = f'{values[-1]} at the end' if values else 'none'
    return (f'{run.folder}: expected evaluations of {run.study.metric!r}, '
            f'got {got}; look at val_evaluator, train_cfg.val_interval and '
            'the log')


def is_trained(run: StudyRun) -> bool:
    """Whether a run's training has come to its end, or diverged."""
    cfg = begun_config(run.config_file)
    return is_finished(run.folder, cfg) or has_diverged(run.folder)


def lock_of(run: StudyRun) -> Path:
    """The file that a runner holds while a run is its own."""
    return run.folder / 'runner.lock'


def holder_of(run: StudyRun) -> str:
    """Who has a run: a runner, or what outlived its own."""
    return lock_holder(lock_of(run)) or tool_at(run)


def tool_at(run: StudyRun) -> str:
    """What trains or measures a run, with or without a runner."""
    measured = [*map(run.stiffness_file, run.study.measure['definitions']),
                run.ablation_file, run.robustness_file]
    locks = [run.folder / TRAINING_LOCK, *map(lock_beside, measured)]
    return next(filter(None, map(lock_holder, locks)), '')


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


def times_of(folder: Path) -> dict[str, Any]:
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


def _state(run: StudyRun) -> tuple[str, str]:
    """State and note of a run without a record."""
    if holder := holder_of(run):
        return 'running', holder
    if failure := failure_of(run):
        return 'failed', failure
    if has_diverged(run.folder):
        return 'stopped', 'diverged, without a record so far'
    return 'stopped' if logs_of(run.folder) else 'waiting', ''


@lru_cache(None)
def _epochs_in(config_file: Path) -> int:
    """A run's config is written once and for all."""
    loop = begun_config(config_file).get('train_cfg') or {}
    return loop.get('max_epochs') or 0
