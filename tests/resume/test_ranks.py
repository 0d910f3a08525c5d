import time

import pytest
from ranks import run_on_ranks

pytestmark = pytest.mark.core


def _write(rank, folder):
    (folder / str(rank)).write_text('')


def _wait(rank, folder):
    _write(rank, folder)
    if rank == 1:
        time.sleep(60)


def _fail(rank):
    if rank == 1:
        raise ValueError('of rank 1')
    time.sleep(60)


def test_all_run(tmp_path):
    run_on_ranks(_write, (tmp_path, ), 3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ['0', '1', '2']


def test_ranks_that_do_not_end_are_killed_and_named(tmp_path, capfd):
    with pytest.raises(AssertionError, match=r'ranks \[1\] of 2 still run'):
        run_on_ranks(_wait, (tmp_path, ), 2, seconds=2)
    stacks = capfd.readouterr().err
    assert stacks.count(' in _wait\n') == 1, 'of the one that waits'


def test_an_error_is_raised_here():
    with pytest.raises(Exception, match='of rank 1'):
        run_on_ranks(_fail, (), 2)
