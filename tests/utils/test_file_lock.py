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


@pytest.mark.parametrize('number', [errno.ENOLCK, errno.EINVAL, errno.EIO])
def test_a_file_system_without_locks(tmp_path, monkeypatch, number):
    """Training goes on there, as stock does."""
    def lockf(file, how):
        raise OSError(number, 'no such thing')

    monkeypatch.setattr(module.fcntl, 'lockf', lockf)
    with pytest.warns(UserWarning, match='no locks .*no such thing'), (
            file_lock(tmp_path / 'lock')):
        pass
