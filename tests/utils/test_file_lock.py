"""One process at a time, and none after its death."""
import errno
import os
import re
import signal
import time

import pytest
from forked import Forked

from stepnet_mm.utils import file_lock as module
from stepnet_mm.utils.file_lock import LockTaken, file_lock


def hold(path):
    with file_lock(path):
        print('held')
        time.sleep(60)


@pytest.fixture
def holder(tmp_path):
    """A process that holds the lock of tmp_path/lock."""
    with Forked(tmp_path, hold, tmp_path / 'lock') as process:
        process.until_it_prints('held')
        yield process


def test_a_second_process_is_told_who_holds_it(tmp_path, holder):
    who = rf'process {holder._process.pid} on {re.escape(os.uname().nodename)}'
    for _ in range(2):  # to ask leaves the holder's name
        with pytest.raises(LockTaken, match=rf'{who} since \d{{4}}-'):
            with file_lock(tmp_path / 'lock'):
                pass


def test_a_killed_process_leaves_no_lock(tmp_path, holder):
    holder.signal(signal.SIGKILL)
    with file_lock(tmp_path / 'lock', wait=60):
        text = (tmp_path / 'lock').read_text()
    assert text.startswith(f'process {os.getpid()} on ')


@pytest.mark.parametrize('number, expected', [
    (module.WITHOUT_LOCKS[0], pytest.warns(UserWarning, match='no locks')),
    (errno.EIO, pytest.raises(OSError, match='input/output'))])
def test_errors_of_the_file_system(tmp_path, monkeypatch, number, expected):
    def lockf(file, how):
        raise OSError(number, 'input/output error')

    monkeypatch.setattr(module.fcntl, 'lockf', lockf)
    with expected, file_lock(tmp_path / 'lock'):
        pass


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / 'precious').write_text('hours')
    (tmp_path / 'lock').symlink_to(tmp_path / 'precious')
    with pytest.raises(OSError, match='lock'), file_lock(tmp_path / 'lock'):
        pass
    assert (tmp_path / 'precious').read_text() == 'hours'
