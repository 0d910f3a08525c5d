"""Keeps a second training out of a work dir."""
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ..utils.file_lock import (
    TRAINING_LOCK,
    LockTaken,
    file_lock,
    read_note,
)
from ..utils.ranks import is_first_rank
from ..utils.slurm import is_earlier_start

#: In s. A requeued job may begin while its last start still ends on another
#: node; an NFS server keeps the locks of a node that died for 90 s.
PATIENCE = 120.


@contextmanager
def work_dir_lock(work_dir: str) -> Iterator[None]:
    """Hold a work dir; the first rank does, and all ranks have to call it.

    A requeued Slurm job waits until its earlier start has ended.

    Args:
        work_dir (str): the work dir, which is made.

    Raises:
        ValueError: on all ranks, if another process trains there.
        OSError: on all ranks, if nothing can be written there.
    """
    from mmengine import dist  # takes seconds to import
    with ExitStack() as held:
        error = [_take(held, work_dir) if is_first_rank() else None]
        dist.broadcast_object_list(error)
        if error[0] is not None:
            raise error[0]
        yield


def _take(held: ExitStack, work_dir: str) -> Exception | None:
    """An error of the first rank has to reach them all."""
    path = Path(work_dir) / TRAINING_LOCK
    try:
        _enter(held, path)
    except LockTaken as taken:
        return ValueError(
            f'work_dir: expected {work_dir} to be free, got {taken}, which '
            'trains there; wait for it, or choose another --work-dir')
    except OSError as error:
        return error
    return None


def _enter(held: ExitStack, path: Path) -> None:
    end, said = time.monotonic() + PATIENCE, False
    while True:
        try:
            held.enter_context(file_lock(path))
            return
        except LockTaken as taken:
            if (time.monotonic() > end
                    or not is_earlier_start(read_note(path))):
                raise
            if not said:
                sys.stderr.write(
                    f'work_dir: {taken} is an earlier start of this job; '
                    f'waiting {PATIENCE:.0f} s at most until it has ended\n')
                said = True
        time.sleep(.5)
