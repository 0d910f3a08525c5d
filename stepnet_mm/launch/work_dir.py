"""Locks of a work dir and of the file of a measurement."""
import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import date
from pathlib import Path
from typing import Any

from ..utils.file_lock import (
    TRAINING_LOCK,
    LockTaken,
    file_lock,
    lock_beside,
    lock_holder,
)
from ..utils.files import file_digest, written_whole
from ..utils.slurm_requeue import is_earlier_start
from .distributed import on_first_rank

#: In s. A requeued job may begin before its last start has ended on another
#: node; an NFS server keeps the locks of a dead node for 90 s.
PATIENCE = 120.


@contextmanager
def work_dir_lock(work_dir: str, config: str) -> Iterator[None]:
    """Lock a work dir on the first rank; a collective call.

    A requeued Slurm job waits until its earlier start has ended.

    Args:
        work_dir (str): the work dir, which is made.
        config (str): the config's file. A link of its name in the work dir
            is deleted, since mmengine would write through it.

    Raises:
        ValueError: if another process trains there.
        OSError: if the folder is not writable.
        SystemExit: on the other ranks, in both cases.
    """
    with ExitStack() as held:
        on_first_rank(_take, held, work_dir, config)
        yield


@contextmanager
def measurement_lock(path: Path) -> Iterator[None]:
    """Hold a lock beside the file of a measurement.

    Args:
        path (Path): the file, which may be absent.

    Raises:
        ValueError: if another process measures into it.
    """
    with ExitStack() as held:
        try:
            held.enter_context(file_lock(lock_beside(path)))
        except LockTaken as taken:
            raise ValueError(
                f'{path}: expected a file that nobody writes, got {taken}, '
                'which measures into it; wait for it, or measure into '
                'another file') from None
        yield


def _take(held: ExitStack, work_dir: str, config: str) -> None:
    try:
        _enter(held, Path(work_dir) / TRAINING_LOCK)
    except LockTaken as taken:
        raise ValueError(
            f'work_dir: expected {work_dir} to be free, got {taken}, which '
            'trains there; wait for it, or choose another --work-dir'
        ) from None
    written = Path(work_dir) / Path(config).name
    if written.is_symlink() or written.is_fifo():
        written.unlink()


def _enter(held: ExitStack, path: Path) -> None:
    try:
        held.enter_context(file_lock(path))
    except LockTaken as taken:
        if not is_earlier_start(taken.note):
            raise
        sys.stderr.write(
            f'work_dir: {taken} is an earlier start of this job; '
            f'waiting {PATIENCE:.0f} s at most until it has ended\n')
        end = time.monotonic() + PATIENCE
        while lock_holder(path) and time.monotonic() < end:
            time.sleep(.5)
        held.enter_context(file_lock(path))


def measure_into(path: Path, args: argparse.Namespace,
                 measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Write a measurement of a checkpoint, with its origin.

    Args:
        path (Path): of the JSON file, which is locked meanwhile.
        args (argparse.Namespace): with ``config``, ``cfg_options`` and
            ``checkpoint``.
        measure (callable): gives the numbers, None for NaN and infinities.

    Returns:
        dict: the content of the file.

    Raises:
        ValueError: if another process measures into it, or a number is not
            finite.
    """
    with measurement_lock(path):
        content = dict(
            config=args.config, options=args.cfg_options or {},
            checkpoint=args.checkpoint, sha256=file_digest(args.checkpoint),
            date=date.today().isoformat(), **measure())
        with written_whole(path) as file:
            file.write(
                json.dumps(content, indent=2, allow_nan=False).encode())
    return content
