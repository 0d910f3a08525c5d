"""A study that is stopped and killed ends as one that was not."""
import pytest
from tiny_study import RUNS, TinyStudy, kill_engine

#: For the undisturbed study that tests/slurm compares with too.
pytestmark = pytest.mark.xdist_group('slurm')


@pytest.mark.long
def test_stopped_and_its_engine_killed(whole_study, tmp_path, studies_venv):
    assert all(f'{name}: accuracy/top1 ' in whole_study.said for name in RUNS)
    study = TinyStudy(tmp_path, studies_venv)
    process = study.start('-j', '2')
    study.until(lambda: study.iterations(*RUNS) >= 4)
    process.terminate()
    assert process.wait() == 143, study.said
    assert [*tmp_path.rglob('preempted_iter_*.pth')]
    assert 'seed0: stopped, the next call goes on' in study.said
    process = study.start('-j', '2')
    study.until(lambda: study.iterations(*RUNS) >= 14)
    kill_engine(process)
    assert process.wait() == 137, study.said
    process = study.start('-j', '2')
    assert process.wait() == 0, study.said
    study.assert_equal(whole_study)
