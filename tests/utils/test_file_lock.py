"""One process at a time, and none after its death."""
import errno
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
from forked import Forked

from stepnet_mm.utils import file_lock as module
from stepnet_mm.utils.file_lock import LockTaken, file_lock, lock_holder


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


def enter(path):
    with file_lock(path):
        pass


def test_a_second_process_is_told_who_holds_it(tmp_path, holder):
    who = rf'process {holder._process.pid} on {re.escape(os.uname().nodename)}'
    with pytest.raises(LockTaken, match=rf'^{who} since \d{{4}}-') as taken:
        enter(tmp_path / 'lock')
    assert taken.value.note['process'] == holder._process.pid
    assert re.match(who, lock_holder(tmp_path / 'lock'))
    (tmp_path / 'lock').write_bytes(b'{"host')  # a note that is not finished
    with pytest.raises(LockTaken, match='^another process$'):
        enter(tmp_path / 'lock')


def test_a_killed_process_leaves_no_lock(tmp_path, holder):
    text = (tmp_path / 'lock').read_text()
    holder.signal(signal.SIGKILL)
    assert holder.wait(60) == -signal.SIGKILL
    # To ask takes nothing.
    assert lock_holder(tmp_path / 'lock') == ''
    assert (tmp_path / 'lock').read_text() == text
    assert lock_holder(tmp_path / 'none') == ''
    assert not (tmp_path / 'none').exists()
    with file_lock(tmp_path / 'lock'):
        assert f'"process": {os.getpid()}' in (tmp_path / 'lock').read_text()


@pytest.mark.parametrize('number, expected', [
    (module.WITHOUT_LOCKS[0], pytest.warns(UserWarning, match='no locks')),
    (errno.EIO, pytest.raises(OSError, match='input/output'))])
def test_errors_of_the_file_system(tmp_path, monkeypatch, number, expected):
    def lockf(file, how):
        raise OSError(number, 'input/output error')

    monkeypatch.setattr(module.fcntl, 'lockf', lockf)
    with expected:
        enter(tmp_path / 'lock')


#: In a process that is no fork, and so has no lock of this one.
ASK = '''
import sys
from stepnet_mm.utils.file_lock import file_lock
with file_lock(sys.argv[1]):
    pass
'''


def test_a_lock_asked_for_in_its_process_stays(tmp_path):
    with file_lock(tmp_path / 'lock'):
        assert lock_holder(tmp_path / 'lock') == 'this process'
        with pytest.raises(LockTaken, match='^this process$'):
            enter(tmp_path / 'lock')
        # Another handle that is closed would have ended it.
        held = subprocess.run(
            [sys.executable, '-c', ASK, tmp_path / 'lock'],
            capture_output=True, text=True, timeout=60)
        assert f'LockTaken: process {os.getpid()} ' in held.stderr
    assert lock_holder(tmp_path / 'lock') == ''


def test_threads_wait_for_one_another(tmp_path):
    inside, most = [], []

    def work():
        with file_lock(tmp_path / 'lock', wait=True):
            inside.append(1)
            most.append(len(inside))
            threading.Event().wait(.02)
            inside.pop()

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 5


def test_an_error_inside_gives_it_back(tmp_path):
    with pytest.raises(ZeroDivisionError), file_lock(tmp_path / 'lock'):
        1 / 0  # noqa: B018
    enter(tmp_path / 'lock')


@pytest.mark.parametrize('place', [
    lambda lock, precious: lock.symlink_to(precious),
    lambda lock, precious: lock.hardlink_to(precious),
    lambda lock, precious: os.mkfifo(lock)
], ids=['link', 'another file', 'pipe'])
def test_what_is_no_lock_stays_as_it_is(tmp_path, place):
    lock, precious = tmp_path / 'lock', tmp_path / 'precious.txt'
    precious.write_text('{"hours": 9}')
    place(lock, precious)
    for ask in (lock_holder, enter):
        with pytest.raises(FileExistsError, match='lock: expected a lock'):
            ask(lock)
    assert precious.read_text() == '{"hours": 9}'
