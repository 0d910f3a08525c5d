"""A study whose tools are short scripts, so that it takes no time."""
import cv2
import numpy as np
import pytest
from made_study import make_study, make_tools, runner_of

from stepnet_mm.studies.run import runs_of


@pytest.fixture(scope='session')
def tools(tmp_path_factory):
    """A folder with a train.py that does as a config says in `behaviour`."""
    return make_tools(tmp_path_factory.mktemp('repository') / 'tools')


@pytest.fixture
def make_runs(tmp_path):
    """make_runs(good={}, bad=dict(behaviour='fail')): runs of these."""
    return lambda *args, **kwargs: runs_of(
        make_study(tmp_path, *args, **kwargs), tmp_path / 'runs')


@pytest.fixture
def make_runner(tools, tmp_path):
    """A runner with these tools; what it says is in its `said`."""
    return lambda **settings: runner_of(tools, tmp_path, **settings)


@pytest.fixture
def data(tmp_path):
    """CIFAR-10 of noise: 40 images to train with, 20 to test with."""
    classes = pytest.importorskip(
        'mmpretrain.datasets').CIFAR10.METAINFO['classes']
    rng = np.random.default_rng(0)
    for split, number in (('train', 4), ('test', 2)):
        for name in classes:
            folder = tmp_path / 'data' / split / name
            folder.mkdir(parents=True)
            for i in range(number):
                cv2.imwrite(str(folder / f'{i}.png'),
                            rng.integers(0, 256, (32, 32, 3), np.uint8))
    return str(tmp_path / 'data')
