"""Which checkpoints of a study nobody needs once its runs have records."""
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path

from ..utils.pointer import POINTER
from .progress import holder_of
from .records import StudyRecord
from .run import StudyRun


def spare_checkpoints(
    runs: Sequence[StudyRun], done: Mapping[tuple[str, int], StudyRecord]
) -> dict[str, list[Path]]:
    """Those of all recorded runs but the best one of each method.

    The best has the highest metric after its last epoch, among those whose
    checkpoints are here. A run that a process is at work on is left alone.

    Args:
        runs (sequence[StudyRun]): of one study.
        done (mapping): key of a run -> its record, of those that are done.

    Returns:
        dict[str, list[Path]]: name of a run -> its files.
    """
    here = [run for run in runs if run.key in done
            and not holder_of(run) and any(run.folder.glob('*.pth'))]
    best = {}
    for run in sorted(here, key=lambda run: _last(done[run.key])):
        best[run.method.name] = run
    return {run.name: sorted(run.folder.glob('*.pth')) for run in here
            if run is not best[run.method.name]}


def _last(record: StudyRecord) -> float:
    return -inf if record.last is None else record.last


def delete_checkpoints(files: Sequence[Path]) -> None:
    """Delete a run's checkpoints, and the file that names the last one.

    Args:
        files (sequence[Path]): of one run.
    """
    (files[0].parent / POINTER).unlink(missing_ok=True)
    for path in files:
        path.unlink()
