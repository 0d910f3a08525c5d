"""Which checkpoints of a study nobody needs once its runs have records."""
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path

from ..utils.pointer import POINTER
from .progress import holder_of, is_trained, results_of
from .records import StudyRecord
from .run import StudyRun
from .training_log import epochs_of, has_diverged


def spare_checkpoints(
    runs: Sequence[StudyRun], done: Mapping[tuple[str, int], StudyRecord]
) -> dict[str, list[Path]]:
    """Those of all recorded runs but the best one of each method.

    The best has the highest metric after its last epoch, among those whose
    checkpoints are here. Left alone are runs that a process is at work on,
    and those whose record is not of this folder: another machine's, or one
    of a run that is made anew here.

    Args:
        runs (sequence[StudyRun]): of one study.
        done (mapping): key of a run -> its record, of those that are done.

    Returns:
        dict[str, list[Path]]: name of a run -> its files.
    """
    files = {run.name: sorted(run.folder.glob('*.pth')) for run in runs}
    here = [run for run in runs if files[run.name] and run.key in done
            and _is_of(done[run.key], run) and not holder_of(run)]
    best = {}
    for run in sorted(here, key=lambda run: _last(done[run.key])):
        best[run.method.name] = run
    return {run.name: files[run.name] for run in here
            if run is not best[run.method.name]}


def _is_of(record: StudyRecord, run: StudyRun) -> bool:
    """Whether a record is of what was trained in a run's folder."""
    values = results_of(run, epochs_of(run.folder))
    return (has_diverged(run.folder) if record.diverged else
            values[-1:] == [record.last] and run.config_file.is_file()
            and is_trained(run))


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
