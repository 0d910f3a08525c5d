import pytest
from made_study import make_study
from study_file import runs_of


@pytest.fixture
def make_runs(tmp_path):
    """make_runs(good={}, bad=dict(behaviour='diverge()')): runs of these."""
    return lambda *args, **kwargs: runs_of(
        make_study(tmp_path, *args, **kwargs), tmp_path / 'work_dirs/made')
