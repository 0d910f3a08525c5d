"""The runs of a study as a table for the terminal."""
from collections.abc import Mapping, Sequence
from math import nan
from statistics import median

from rich.table import Table
from rich.text import Text

from ..utils.command_line import clock, printable
from .progress import STATES, RunState, state_of
from .records import StudyRecord
from .run import StudyRun

#: A run's key -> its record.
Done = Mapping[tuple[str, int], StudyRecord]
COLORS = dict(running='cyan', failed='red', diverged='red', stopped='yellow',
              waiting='white', done='green')


def progress_table(runs: Sequence[StudyRun], done: Done) -> Table:
    """One row a run, those first that somebody may want to look at.

    Args:
        runs (sequence[StudyRun]): of one study.
        done (mapping): key of a run -> its record.
    """
    states = [(run, state_of(run, done)) for run in runs]
    states.sort(key=lambda pair: STATES.index(pair[1].state))
    table = Table(box=None, padding=(0, 2, 0, 0), caption_justify='left')
    table.caption = summary(states, done)
    for name in ('run', 'state', 'epochs', runs[0].study.metric, 'ran',
                 'left'):
        table.add_column(name, no_wrap=True)
    table.add_column('note')  # the one to be cut where it gets narrow
    for run, state in states:
        table.add_row(
            run.name, Text(state.state, COLORS[state.state]),
            f'{state.epochs}/{state.total}' if state.total else '',
            '' if state.metric is None else f'{state.metric:.2f}',
            clock(state.seconds) if state.seconds else '',
            '' if state.is_over else clock(time_left(run, state, done)),
            Text(_last_line(state.note), no_wrap=True, overflow='ellipsis'))
    return table


def summary(states: Sequence[tuple[StudyRun, RunState]],
            done: Done) -> str:
    """How many runs are where, and how long all of them still take."""
    counts = [f'{n} {name}' for name in STATES
              if (n := sum(state.state == name for _, state in states))]
    left = sum(time_left(run, state, done) for run, state in states)
    return ', '.join([*counts, f'left: {clock(left)} of single runs'])


def time_left(run: StudyRun, state: RunState, done: Done) -> float:
    """How long a run still takes, in s; NaN if nothing says it."""
    if state.is_over:
        return 0.
    if state.fraction and state.seconds:
        return state.seconds * (1 / state.fraction - 1)
    return expected_time(run, done)


def expected_time(run: StudyRun, done: Done) -> float:
    """How long a run takes in all, in s, NaN if nothing says it.

    The median of those of its method, or of all methods, since some were
    stopped or slowed down; otherwise as the study says.
    """
    for records in ([r for r in done.values() if r.method == run.method.name],
                    [*done.values()]):
        if records:
            return median(r.wall_seconds for r in records)
    return run.study.seconds or nan


def _last_line(text: str) -> str:
    return printable(text.splitlines()[-1]) if text else ''
