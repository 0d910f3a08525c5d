"""One training at a time in a work dir, whichever rank asks."""
import errno

import pytest
from forked import Forked
from held_lock import held_lock
from jobs import train_in_forks

from stepnet_mm.launch import work_dir_lock as module
from stepnet_mm.launch.work_dir_lock import TRAINING_LOCK, work_dir_lock


@pytest.fixture(autouse=True)
def no_job(monkeypatch):
    for name in 'SLURM_RESTART_COUNT', 'SLURM_PROCID', 'RANK':
        monkeypatch.delenv(name, raising=False)


def enter(work_dir):
    with work_dir_lock(str(work_dir)):
        pass


def test_all_ranks_stop_at_once(tmp_path):
    """The first rank alone sees the lock."""
    work = tmp_path / 'work'
    with held_lock(tmp_path, work / TRAINING_LOCK):
        first, second = train_in_forks(work, code=1)
    assert f'{work}/training.lock: expected to be free, got process' in first
    assert second.startswith('rank 1 of 2 on ')
    assert second.endswith(' stops: rank 0 says why\n')
    assert [path.name for path in work.iterdir()] == [TRAINING_LOCK]


def test_one_training_in_a_work_dir(tmp_path):
    for _ in range(2):
        with work_dir_lock(str(tmp_path)), Forked(
                tmp_path, enter, tmp_path) as process:
            assert process.wait(60) == 1


def test_a_requeued_job_waits_for_its_earlier_start(tmp_path, monkeypatch,
                                                    capsys):
    work = tmp_path / 'work'
    with held_lock(tmp_path, work / TRAINING_LOCK, seconds=2):
        with pytest.raises(ValueError, match='expected to be free'):
            enter(work)
        assert not capsys.readouterr().err
        monkeypatch.setenv('SLURM_RESTART_COUNT', '1')
        enter(work)
    assert capsys.readouterr().err.count('waiting 120 s') == 1


def test_a_work_dir_that_is_a_file(tmp_path):
    (tmp_path / 'work').touch()
    with pytest.raises(OSError, match='work'):
        enter(tmp_path / 'work')


@pytest.mark.parametrize('number, free, named', [
    (errno.ENOSPC, 0, True), (errno.EDQUOT, 2**30, True),
    (errno.ENOSPC, 2**30, False), (errno.EPIPE, 0, False)])
def test_a_full_work_dir_is_named(tmp_path, monkeypatch, number, free, named):
    """Where mmengine writes; /tmp may be full as well."""
    monkeypatch.setattr(module, 'free_bytes', lambda path: free)
    with pytest.raises(OSError, match='no more') as error, (
            work_dir_lock(str(tmp_path))):
        raise OSError(number, 'no more')
    assert (error.value.filename == str(tmp_path)) == named
