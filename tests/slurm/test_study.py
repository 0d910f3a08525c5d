"""A study on a real Slurm: preempted, requeued, its engine killed."""
import pytest
from tiny_study import RUNS, TinyStudy, kill_engine

pytestmark = pytest.mark.xdist_group('slurm')


@pytest.mark.long
def test_preempted_requeued_and_its_engine_killed(
        lab, whole_study, tmp_path, studies_venv):
    study = TinyStudy(tmp_path, studies_venv,
                      SLURM_CONF=lab.environment['SLURM_CONF'])
    words = 'sbatch=--partition=main --time=30', '-j', '2'
    process = study.start(*words)
    preempted, requeued = RUNS
    # Each on its own: the first may be through when the second begins.
    study.until(lambda: study.iterations(preempted) > 3)
    lab.run('scancel', '--signal=USR1', jobs(lab)[preempted])
    study.until(lambda: study.iterations(requeued) > 3)
    lab.run('scontrol', 'requeue', jobs(lab)[requeued])
    study.until(lambda: 'exit code 75' in study.log(preempted))
    kill_engine(process)
    assert process.wait() == 137, study.said
    process = study.start(*words)
    assert process.wait() == 0, study.said
    assert 'requeueing Slurm job' in study.log(preempted)
    for name in preempted, requeued:
        assert 'start 2, 1 ranks' in study.log(name)
    study.assert_equal(whole_study)


def jobs(lab):
    """Run -> the number of its job."""
    shown = lab.run('squeue', '-ho', '%j %i').splitlines()
    return {name.removeprefix('tiny.'): job for name, job in
            map(str.split, shown)}
