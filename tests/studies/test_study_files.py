"""Study files: their keys, and those of the repository."""
import functools
from pathlib import Path

import pytest
from made_study import make_study
from study_file import read_study, runs_of
from study_records import planned

from stepnet_mm.config import read_config
from stepnet_mm.config.digests import config_digest

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(path.stem for path in (ROOT / 'configs/studies').glob('*.py'))
PAPER = [name for name in NAMES if name.startswith(('table', 'fig'))]
OWN = [name for name in NAMES if name not in PAPER]


def test_options_and_seeds_of_the_study_and_of_a_method(
        tmp_path, monkeypatch):
    make_study(tmp_path, '''
options = {'train_cfg.max_epochs': 3, 'a': 1}
methods['own'].update(
    seeds=[7], pooled=False, paper='resnet164_se_cifar10', baseline=None)
''', seeds=[0, 1], own={'a': 2}, other={})
    monkeypatch.chdir(tmp_path)
    study = read_study('made.py')
    own, other = study.methods
    assert str(own.config) == 'config.py'  # relative to the study file
    assert own.options == {'train_cfg.max_epochs': 3, 'a': 2}
    assert (own.seeds, other.seeds) == ([7], [0, 1])
    assert (own.paper, other.paper) == ('resnet164_se_cifar10', '')
    assert (study.name, own.pooled, other.pooled) == ('made', False, True)
    assert study.measure == dict(
        num_samples=2000, definitions=['residual'], ablate_steps=False,
        robustness=False)


def test_settings_change_with_what_methods_share_only(tmp_path):
    settings = [make_study(tmp_path, text, **methods).settings
                for text, methods in (
                    ('', {}), ('measure = dict(ablate_steps=True)', {}),
                    ('measure = dict(robustness=True)', {}),
                    ('pooled = False', dict(other={'a': 1})),
                    ("baselines = ['other']", {}),
                    ("options = {'a': 1}", {}),
                    ('measure = dict(num_samples=3)', {}),
                    ("metric = 'loss'", {}))]
    assert len({*settings[:5]}) == 1
    assert len({*settings}) == 4


@pytest.mark.parametrize('text, key', [
    ('methods = [1]', 'list'), ('steps = 3', "'steps'"),
    ("methods['a_seed1'] = methods['good']", 'methods: .*a_seed1'),
    ("methods['good']['seed'] = 3", "'seed'"), ('seeds = 3', 'int'),
    ('measure = dict(samples=3)', 'measure: .*samples'),
    ("measure = dict(definitions=['nsi'])", 'measure.definitions: .*nsi'),
    ('1 / 0', 'ZeroDivisionError'), ("_base_ = 'gone.py'", 'gone.py')])
def test_wrong_studies(tmp_path, text, key):
    with pytest.raises(ValueError, match=f'made.py: .*{key}'):
        make_study(tmp_path, text)


def test_runs_are_a_round_of_seeds_after_the_other(make_runs):
    assert [run.name for run in make_runs(
        "methods['a']['seeds'] = [3]", (0, 1), a={}, b={})] == [
            'a_seed3', 'b_seed0', 'b_seed1']


@functools.cache
def runs(name):
    """The first run of each method."""
    study = read_study(ROOT / f'configs/studies/{name}.py')
    return {run.method.name: run
            for run in runs_of(study, Path('work_dirs'))[::-1]}


@functools.cache
def configs(name):
    """The config of each method; not to be changed."""
    return {method: run.config() for method, run in runs(name).items()}


def test_the_papers_studies_run_the_configs_as_they_are():
    """tests/test_configs.py reads and builds these."""
    assert len(PAPER) >= 13
    for run in (run for name in PAPER for run in runs(name).values()):
        assert run.method.options == {}
        assert run.method.paper == run.method.config.stem


@pytest.mark.core
def test_the_digest_is_that_of_the_config_itself():
    run = next(iter(runs('table1_cifar10').values()))
    own = read_config(str(run.method.config))
    assert config_digest(run.config()) == config_digest(own)
    assert config_digest(run.config()) != config_digest(
        read_config(str(run.method.config), options={'model.extra': 1}))


@pytest.mark.parametrize('dataset', [
    'cifar10', pytest.param('cifar100', marks=pytest.mark.long)])
def test_fig_8_has_all_tricks_and_stands_beside_table_1(dataset):
    tricks = {path.stem
              for path in ROOT.glob(f'configs/tricks/*_{dataset}.py')}
    ours, theirs = (runs(f'{name}_{dataset}') for name in ('fig8', 'table1'))
    found = [run.method.paper for run in ours.values()]
    assert len(found) == 18 and set(found) == tricks
    assert not {*ours} & {*theirs}
    for digest in (lambda run: run.study.settings,
                   lambda run: planned(run).test_data):
        assert len({digest(next(iter(own.values())))
                    for own in (ours, theirs)}) == 1


@pytest.mark.parametrize('name', [pytest.param(
    name, marks=() if name.endswith('_inputs') else pytest.mark.long)
    for name in OWN])
def test_methods_of_a_study_differ_and_see_the_same_data(name):
    own = configs(name).values()
    assert len({*map(config_digest, own)}) == len(own) > 1
    assert len({planned(run).test_data for run in runs(name).values()}) == 1
    for key in 'train_cfg', 'train_dataloader':
        assert len({repr(cfg[key]) for cfg in own}) == 1
