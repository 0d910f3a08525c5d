"""One process at a time, and none after its death."""
import errno
import os
import re
import signal

import pytest
from held_lock import held_lock

from stepnet_mm.utils import file_lock as module
from stepnet_mm.utils.file_lock import LockTaken, file_lock


def test_a_second_process_is_told_who_holds_it(tmp_path):
    """And a killed one leaves no lock."""
    path, name = tmp_path / 'lock', re.escape(os.uname().nodename)
    with held_lock(tmp_path, path) as holder:
        who = rf'process {holder._process.pid} on {name} since \d{{4}}-'
        for _ in range(2):  # to ask leaves the holder's name
            with pytest.raises(LockTaken, match=who), file_lock(path):
                pass
        holder.signal(signal.SIGKILL)
        with file_lock(path, wait=60):
            assert path.read_text().startswith(f'process {os.getpid()} on ')


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
