import pytest
from lab import Lab, missing


@pytest.fixture(scope='session')
def lab(tmp_path_factory):
    """Two virtual nodes for all tests of this folder."""
    why = missing()
    if why:
        pytest.skip(f'no Slurm on this machine: {why}')
    with Lab(tmp_path_factory.mktemp('slurm')) as lab:
        yield lab
