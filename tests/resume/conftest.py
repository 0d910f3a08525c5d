import pytest
from resume_run import final_state, train


@pytest.fixture(scope='session')
def whole(tmp_path_factory):
    """The end of a run that was not stopped; each is run once."""
    states = {}

    def state(**settings):
        key = repr(settings)
        if key not in states:
            states[key] = final_state(train(
                tmp_path_factory.mktemp('whole'), interval=1000, **settings))
        return states[key]

    return state
