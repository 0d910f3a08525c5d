"""A study whose tools are short scripts, so that it takes no time."""
import textwrap
from pathlib import Path

import pytest
import torch
from made_study import runner_of

from stepnet_mm.stiffness import RecordHeader, append_rows, begin_record
from stepnet_mm.studies.run import runs_of
from stepnet_mm.studies.study import read_study

HERE = Path(__file__).parent
CONFIG = '''
train_cfg = dict(by_epoch=True, max_epochs=2)
train_dataloader = dict(dataset=dict(type='A', data_root='data'))
val_dataloader = dict(dataset=dict(type='A', data_root='data'))
behaviour = 'good'
'''


@pytest.fixture(scope='session')
def tools(tmp_path_factory):
    """A folder with a train.py that does as a config says in `behaviour`."""
    folder = tmp_path_factory.mktemp('repository') / 'tools'
    (folder / 'analysis').mkdir(parents=True)
    for name in ('train.py', 'analysis/measure_stiffness.py'):
        (folder / name).write_text((HERE / 'fake_tools' / name).read_text())
    path = folder / 'record.jsonl'
    begin_record(path, RecordHeader('residual', ['a', 'b'], [1, 1], [1, 2], 2))
    append_rows(path, 0, torch.tensor([[.1, .2], [.3, .4]]), torch.ones(2, 2))
    return folder


@pytest.fixture
def make_study(tmp_path):
    """make_study(good={}, bad=dict(behaviour='fail')): a study of these."""

    def make(text='', seeds=(0, ), **methods):
        (tmp_path / 'config.py').write_text(CONFIG)
        methods = {name: dict(config='config.py', options=options)
                   for name, options in (methods or dict(good={})).items()}
        (tmp_path / 'made.py').write_text(
            f'methods = {methods!r}\nseeds = {list(seeds)}\n'
            + textwrap.dedent(text))
        return read_study(tmp_path / 'made.py')

    return make


@pytest.fixture
def make_runs(make_study, tmp_path):
    """The runs of such a study, in tmp_path/runs."""
    return lambda *args, **kwargs: runs_of(
        make_study(*args, **kwargs), tmp_path / 'runs')


@pytest.fixture
def make_runner(tools, tmp_path):
    """A runner with these tools; what it says is in its `said`."""
    return lambda **settings: runner_of(tools, tmp_path, **settings)
