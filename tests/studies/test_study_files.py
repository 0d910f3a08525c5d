"""Study files: their keys, and those of the repository."""
import functools
from pathlib import Path

import pytest
from made_study import make_study
from records import planned
from study_file import config_digest, read_study, runs_of

from stepnet_mm.config import read_config

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(path.stem for path in (ROOT / 'configs/studies').glob('*.py'))
PAPER = [name for name in NAMES if name.startswith(('table', 'fig'))]


def test_options_and_seeds_of_the_study_and_of_a_method(make_runs):
    runs = make_runs('''
options = {'train_cfg.max_epochs': 3, 'a': 1}
methods['own'].update(seeds=[7], pooled=False, baseline='other')
''', seeds=[0, 1], own={'a': 2}, other={'train_cfg.max_iters': 9})
    # A round of seeds after the other.
    assert [run.name for run in runs] == [
        'own_seed7', 'other_seed0', 'other_seed1']
    own, other = (run.method for run in runs[:2])
    assert own.options == {'train_cfg.max_epochs': 3, 'a': 2}
    assert (own.pooled, other.pooled) == (False, True)
    assert runs[0].study.measure == dict(
        num_samples=2000, definitions=['residual'], ablate_steps=False)
    cfg = runs[0].config()
    assert (cfg.train_cfg.max_epochs, cfg.randomness.seed) == (3, 7)
    # mmengine's default would log each evaluation as one of epoch 0.
    assert 'default_hooks' not in cfg
    assert runs[1].config().default_hooks.logger == dict(
        type='LoggerHook', log_metric_by_epoch=False)


def test_settings_change_with_what_methods_share_only(tmp_path):
    settings = [make_study(tmp_path, text, **methods).settings
                for text, methods in (
                    ('', {}), ('measure = dict(ablate_steps=True)', {}),
                    ('pooled = False', dict(other={'a': 1})),
                    ("baselines = ['other']", {}),
                    ("options = {'a': 1}", {}),
                    ('measure = dict(num_samples=3)', {}),
                    ("metric = 'loss'", {}))]
    assert len({*settings[:4]}) == 1
    assert len({*settings}) == 4


@pytest.mark.parametrize('text, key', [
    ('methods = [1]', 'list'), ('steps = 3', "'steps'"),
    ("methods['a_seed1'] = methods['good']", 'methods: .*a_seed1'),
    ("methods['good']['seed'] = 3", "'seed'"), ('seeds = 3', 'int'),
    ('measure = dict(samples=3)', 'measure: .*samples'),
    ("measure = dict(definitions=['nsi'])", 'measure.definitions: .*nsi'),
    ('measure = dict(num_samples=0)', 'measure.num_samples'),
    ('1 / 0', 'ZeroDivisionError')])
def test_wrong_studies(tmp_path, text, key):
    with pytest.raises(ValueError, match=f'made.py: .*{key}'):
        make_study(tmp_path, text)


@functools.cache
def runs(name):
    """The first run of each method."""
    study = read_study(ROOT / f'configs/studies/{name}.py')
    return {run.method.name: run
            for run in runs_of(study, Path('work_dirs'))[::-1]}


@pytest.mark.core
def test_the_papers_studies_run_the_configs_as_they_are():
    """tests/test_configs.py reads and builds these."""
    assert len(PAPER) >= 13
    for run in (run for name in PAPER for run in runs(name).values()):
        assert run.method.options == {}
        assert run.method.paper == run.method.config.stem
    own = read_config(str(run.method.config))
    assert config_digest(run.config()) == config_digest(own)


def test_fig_8_has_all_tricks_and_stands_beside_table_1():
    tricks = {path.stem for path in ROOT.glob('configs/tricks/*_cifar10.py')}
    ours, theirs = (runs(f'{name}_cifar10') for name in ('fig8', 'table1'))
    found = [run.method.paper for run in ours.values()]
    assert len(found) == 18 and set(found) == tricks
    assert not {*ours} & {*theirs}
    one, other = ours['plain_mixup'], theirs['plain']
    assert one.study.settings == other.study.settings
    assert planned(one).test_data == planned(other).test_data


@pytest.mark.parametrize('name', [pytest.param(
    name, marks=() if name.endswith('_inputs') else pytest.mark.long)
    for name in NAMES if name not in PAPER])
def test_methods_of_a_study_differ_and_see_the_same_data(name):
    own = [run.config() for run in runs(name).values()]
    assert len({*map(config_digest, own)}) == len(own) > 1
    assert len({planned(run).test_data for run in runs(name).values()}) == 1
    for key in 'train_cfg', 'train_dataloader':
        assert len({repr(cfg[key]) for cfg in own}) == 1
