"""One training at a time in a work dir, whichever rank asks."""
import os
import time
from contextlib import ExitStack

import pytest
from forked import Forked
from jobs import train_in_forks

from stepnet_mm.launch import work_dir as module
from stepnet_mm.launch.work_dir import measurement_lock, work_dir_lock
from stepnet_mm.utils.file_lock import TRAINING_LOCK, file_lock, lock_holder


def hold(path, seconds, **environment):
    """In another process."""
    os.environ.update(environment)
    with file_lock(path):
        print('held', flush=True)
        time.sleep(seconds)


@pytest.fixture
def held(tmp_path):
    """held(**environment) has another process hold the work dir."""
    with ExitStack() as processes:

        def start(seconds=60, **environment):
            (tmp_path / 'holder').mkdir()
            process = processes.enter_context(Forked(
                tmp_path / 'holder', hold, tmp_path / 'work' / TRAINING_LOCK,
                seconds, **environment))
            process.until_it_prints('held')
            return tmp_path / 'work'

        yield start


@pytest.fixture(autouse=True)
def no_job(monkeypatch):
    for name in ('SLURM_JOB_ID', 'SLURM_RESTART_COUNT', 'SLURM_PROCID',
                 'RANK'):
        monkeypatch.delenv(name, raising=False)


def test_all_ranks_stop_at_once(held, tmp_path):
    """The first rank alone sees the lock."""
    work = held()
    first, second = train_in_forks(work, code=1)
    assert f'work_dir: expected {work} to be free, got process' in first
    assert second.startswith('rank 1 of 2 on ')
    assert second.endswith(' stops: rank 0 says why\n')
    assert [path.name for path in work.iterdir()] == [TRAINING_LOCK]


def test_the_first_rank_holds_it_for_all(held, monkeypatch):
    work = str(held())
    with pytest.raises(ValueError, match='work_dir: .* got process'):
        with work_dir_lock(work, 'toy.py'):
            pass
    monkeypatch.setenv('RANK', '1')
    with work_dir_lock(work, 'toy.py'):
        pass


def test_one_training_in_a_work_dir(tmp_path):
    for _ in range(2):
        with work_dir_lock(str(tmp_path), 'toy.py'):
            assert lock_holder(tmp_path / TRAINING_LOCK) == 'this process'


def test_one_measurement_into_a_file(tmp_path):
    path = tmp_path / 'a.jsonl'
    with measurement_lock(path), pytest.raises(
            ValueError, match='a.jsonl: expected a file that nobody writes, '
            'got this process'), measurement_lock(path):
        pass
    with measurement_lock(path):
        pass


def requeued(monkeypatch, restarts, job='42'):
    monkeypatch.setenv('SLURM_JOB_ID', job)
    monkeypatch.setenv('SLURM_RESTART_COUNT', restarts)


def test_a_requeued_job_waits_for_its_earlier_start(held, monkeypatch,
                                                    capsys):
    work = held(seconds=1, SLURM_JOB_ID='42')
    requeued(monkeypatch, '1')
    with work_dir_lock(str(work), 'toy.py'):
        pass
    said = capsys.readouterr().err
    assert said.count('is an earlier start of this job; waiting 120 s') == 1


def test_others_do_not_wait(held, monkeypatch, capsys):
    monkeypatch.setattr(module, 'PATIENCE', 1)
    work = held(SLURM_JOB_ID='42')
    for job, restarts, waits in (
            ('43', '1', False),  # another job
            ('42', '0', False),  # a second step of this one
            ('42', '1', True)):  # an earlier start that does not end
        requeued(monkeypatch, restarts, job)
        with pytest.raises(ValueError, match='work_dir: .* got process'):
            with work_dir_lock(str(work), 'toy.py'):
                pass
        assert ('waiting' in capsys.readouterr().err) == waits


def test_a_work_dir_that_is_a_file(tmp_path):
    (tmp_path / 'work').touch()
    with pytest.raises(OSError, match='work'):
        with work_dir_lock(str(tmp_path / 'work'), 'toy.py'):
            pass


def test_the_config_is_not_written_through_a_link(tmp_path):
    """A work dir may be another's."""
    (tmp_path / 'dear').write_text('dear')
    (tmp_path / 'work').mkdir()
    (tmp_path / 'work/toy.py').symlink_to(tmp_path / 'dear')
    os.mkfifo(tmp_path / 'work/pipe.py')
    for name in ('toy.py', 'pipe.py'):
        with work_dir_lock(str(tmp_path / 'work'), f'configs/{name}'):
            assert not os.path.lexists(tmp_path / 'work' / name)
    assert (tmp_path / 'dear').read_text() == 'dear'
