"""The launchers and the preemption hook on a real Slurm."""
import re
import subprocess

import jobs
import pytest
from waiting import until

# One lab, and so one worker of pytest-xdist.
pytestmark = pytest.mark.xdist_group('slurm')

#: A training that one can stop in its midst.
SLOW = '--cfg-options', 'default_hooks.slow.type=SlowHook'


@pytest.fixture(scope='session')
def whole(lab, tmp_path_factory):
    """The end of a run without Slurm that nothing disturbed."""
    folder = tmp_path_factory.mktemp('whole')
    jobs.train_in_forks(folder)
    # 4 epochs of 100 images, 2 ranks, batches of 4.
    assert jobs.iteration(folder) == 52
    return jobs.saved(folder)


def finished(lab, job):
    until(lambda: lab.field(job, 'JobState') not in (
        'RUNNING', 'PENDING', 'COMPLETING', 'CONFIGURING'), 300, .2)
    return lab.field(job, 'JobState')


@pytest.mark.long
def test_a_job_that_is_cancelled_is_saved_and_stays_away(lab, tmp_path):
    job = jobs.submit(lab, tmp_path, *SLOW, 'default_hooks.slow.seconds=0.2')
    until(lambda: jobs.iteration(tmp_path) >= 10, 240)
    lab.run('scancel', job)
    assert finished(lab, job) == 'CANCELLED'
    assert re.search(f'Slurm job {job} is (CANCELLED|COMPLETING): not '
                     'requeued', (tmp_path / 'job.log').read_text())
    assert list(tmp_path.glob('preempted_iter_*.pth'))


@pytest.mark.long
def test_two_nodes_preempted_at_the_time_limit(lab, tmp_path, whole):
    """The signal of slurm_submit.sh, 2 minutes before; all have 2 at most."""
    # Slurm looks at the limits every 30 s.
    job = jobs.submit(
        lab, tmp_path, *SLOW, 'default_hooks.slow.seconds=0.9',
        'default_hooks.slow.first=True', sbatch=['--time=9'])
    until(lambda: jobs.iteration(tmp_path) >= 5, 240)
    minutes = int(lab.field(job, 'RunTime').split(':')[1])
    limit(lab, job, minutes + 2)
    until(lambda: lab.field(job, 'Restarts') == '1', 240, .2)
    limit(lab, job, 9)
    assert finished(lab, job) == 'COMPLETED'
    log = (tmp_path / 'job.log').read_text()
    assert f'requeueing Slurm job {job}, 1 of 20' in log
    assert 'start 2, 2 ranks' in log
    jobs.assert_same_end(whole, jobs.saved(tmp_path))


def limit(lab, job, minutes):
    lab.run('scontrol', 'update', f'JobId={job}', f'TimeLimit={minutes}')


@pytest.mark.long
def test_slurm_train(lab, tmp_path, whole):
    done = subprocess.run(
        ['bash', jobs.ROOT / 'tools/slurm_train.sh', 'main', 'toy',
         jobs.CONFIG, tmp_path],
        cwd=jobs.ROOT, capture_output=True, text=True, env=dict(
            lab.environment, **jobs.ENVIRONMENT, GRES='', GPUS='2',
            GPUS_PER_NODE='1', CPUS_PER_TASK='1'))
    assert done.returncode == 0, done.stderr
    jobs.assert_same_end(whole, jobs.saved(tmp_path))
