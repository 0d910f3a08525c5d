import time

import pytest
from ranks import run_on_ranks


def _write(rank, folder):
    (folder / str(rank)).write_text('')


def _wait(rank, folder):
    _write(rank, folder)
    if rank == 1:
        time.sleep(60)


def test_ranks_that_do_not_end_are_killed_and_named(tmp_path, capfd):
    with pytest.raises(AssertionError, match=r'ranks \[1\] of 2 still run'):
        run_on_ranks(_wait, (tmp_path, ), 2, seconds=1)
    stacks = capfd.readouterr().err
    assert stacks.count(' in _wait\n') == 1, 'of the one that waits'
