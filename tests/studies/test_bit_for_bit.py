"""A study that is stopped and killed ends as one that was not."""
import pytest
from tiny_study import TinyStudy, kill_engine


@pytest.mark.soak  # tests/slurm/test_study.py is nearly the same in --all
def test_stopped_and_its_engine_killed(whole_study, tmp_path, studies_venv):
    study = TinyStudy(tmp_path, studies_venv)
    process = study.start()
    study.until(lambda: study.iterations() >= 4)
    process.terminate()
    assert process.wait() == 143, study.said
    assert [*tmp_path.rglob('preempted_iter_*.pth')]
    assert 'seed0: stopped, the next call goes on' in study.said
    process = study.start()
    study.until(lambda: study.iterations() >= 8)
    kill_engine(process)
    assert process.wait() == 137, study.said
    process = study.start()
    assert process.wait() == 0, study.said
    study.assert_equal(whole_study)
