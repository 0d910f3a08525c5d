"""A study whose tools are short scripts, so that it takes no time."""
import pytest
from made_study import make_study, make_tools
from study_file import runs_of


@pytest.fixture(scope='session')
def tools(tmp_path_factory):
    """A folder with a train.py that does as a config says in `behaviour`."""
    return make_tools(tmp_path_factory.mktemp('repository') / 'tools')


@pytest.fixture
def make_runs(tmp_path):
    """make_runs(good={}, bad=dict(behaviour='fail')): runs of these."""
    return lambda *args, **kwargs: runs_of(
        make_study(tmp_path, *args, **kwargs), tmp_path / 'runs')
