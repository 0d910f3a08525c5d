"""A study on a real Slurm: preempted, requeued, its engine killed."""
import pytest
from tiny_study import NAME, TinyStudy, kill_engine

pytestmark = pytest.mark.xdist_group('slurm')


@pytest.mark.long
def test_preempted_requeued_and_its_engine_killed(
        lab, whole_study, tmp_path, studies_venv):
    study = TinyStudy(tmp_path, studies_venv,
                      SLURM_CONF=lab.environment['SLURM_CONF'])
    words = 'sbatch=--partition=main --time=30',
    process = study.start(*words)
    study.until(lambda: study.iterations() > 2)
    job, = lab.run('squeue', f'--name=tiny.{NAME}', '-ho', '%i').split()
    lab.run('scontrol', 'requeue', job)  # as Slurm preempts a job
    study.until(lambda: 'PreemptionHook: saved' in study.log)
    kill_engine(process)
    assert process.wait() == 137, study.said
    process = study.start(*words)
    assert process.wait() == 0, study.said
    assert 'start 2, 1 ranks' in study.log
    study.assert_equal(whole_study)
