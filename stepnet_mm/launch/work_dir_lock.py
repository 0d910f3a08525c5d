"""The lock that keeps a second training out of a work dir."""
import errno
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ..utils.file_lock import LockTaken, file_lock
from ..utils.files import free_bytes, named_errors
from .distributed import on_first_rank

#: In a work dir, held by the training in it.
TRAINING_LOCK = 'training.lock'
#: In s. A requeued job may begin before its last start has ended on another
#: node; an NFS server keeps the locks of a dead node for 90 s.
PATIENCE = 120.


@contextmanager
def work_dir_lock(work_dir: str) -> Iterator[None]:
    """Lock a work dir on the first rank; a collective call.

    The folder is made. A requeued Slurm job waits, for its earlier start may
    not have ended.

    Raises:
        ValueError: if another process trains there.
        OSError: if the folder is not writable. One of a full disk, in the
            block, names the folder if the writer, as mmengine, names no file.
        SystemExit: on the other ranks, in both cases.
    """
    with ExitStack() as held:
        on_first_rank(_take, held, Path(work_dir))
        try:
            yield
        except OSError as error:
            if (error.errno == errno.EDQUOT or error.errno == errno.ENOSPC
                    and free_bytes(work_dir) < 2**20):  # not /tmp's
                with named_errors(work_dir):
                    raise
            raise


def _take(held: ExitStack, work_dir: Path) -> None:
    path = work_dir / TRAINING_LOCK
    try:
        held.enter_context(file_lock(path))
    except LockTaken as taken:
        if not int(os.environ.get('SLURM_RESTART_COUNT', 0)):
            raise
        sys.stderr.write(
            f'{taken}. This job was requeued: waiting {PATIENCE:.0f} s at '
            'most until its earlier start has ended\n')
        held.enter_context(file_lock(path, PATIENCE))
