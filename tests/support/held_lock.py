"""A lock that another process holds."""
import time
from contextlib import contextmanager

from forked import Forked
from waiting import until

from stepnet_mm.utils.file_lock import file_lock


@contextmanager
def held_lock(folder, path, seconds=60):
    """That process, whose output is in the folder."""
    with Forked(folder, _hold, path, seconds) as process:
        until(process.printed)
        yield process


def _hold(path, seconds):
    with file_lock(path):
        print('held', flush=True)
        time.sleep(seconds)
