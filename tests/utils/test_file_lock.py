"""One process at a time, and none after its death."""
import errno
import os
import re
import signal
import subprocess
import sys

import pytest

from stepnet_mm.utils import file_lock as module
from stepnet_mm.utils.file_lock import LockTaken, file_lock

pytestmark = pytest.mark.core

HOLD = '''
import sys, time
from stepnet_mm.utils.file_lock import file_lock
with file_lock(sys.argv[1]):
    print('held', flush=True)
    time.sleep(60)
'''


@pytest.fixture
def holder(tmp_path):
    """A process that holds the lock of tmp_path/lock."""
    process = subprocess.Popen([sys.executable, '-c', HOLD, tmp_path / 'lock'],
                               stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == 'held\n'
    yield process
    process.kill()
    process.wait()


def test_a_second_process_is_told_who_holds_it(tmp_path, holder):
    with pytest.raises(LockTaken, match=(
            rf'process {holder.pid} on {re.escape(os.uname().nodename)} '
            r'since \d{4}-')), file_lock(tmp_path / 'lock'):
        pass


def test_a_killed_process_leaves_no_lock(tmp_path, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with file_lock(tmp_path / 'lock'):
        assert f'"process": {os.getpid()}' in (tmp_path / 'lock').read_text()


def test_an_unfinished_note_is_no_error(tmp_path, holder):
    (tmp_path / 'lock').write_bytes(b'{"host')
    with pytest.raises(LockTaken, match='^another process$'), file_lock(
            tmp_path / 'lock'):
        pass


def test_folders_are_made(tmp_path):
    with file_lock(tmp_path / 'a/b/lock'):
        assert (tmp_path / 'a/b/lock').is_file()


@pytest.mark.parametrize('number', module.WITHOUT_LOCKS)
def test_without_locks_it_warns_and_goes_on(tmp_path, monkeypatch, number):
    def lockf(file, how):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(module.fcntl, 'lockf', lockf)
    with pytest.warns(UserWarning, match='no locks'), file_lock(
            tmp_path / 'lock'):
        pass


def test_other_errors_come_through(tmp_path, monkeypatch):
    def lockf(file, how):
        raise OSError(errno.EIO, 'input/output error')

    monkeypatch.setattr(module.fcntl, 'lockf', lockf)
    with pytest.raises(OSError, match='input/output'), file_lock(
            tmp_path / 'lock'):
        pass
