"""What a study file says, and what is wrong with one."""
import pytest
from made_study import make_study
from study_file import read_study


def test_options_and_seeds_of_the_study_and_of_a_method(tmp_path):
    study = make_study(tmp_path, '''
options = {'train_cfg.max_epochs': 3, 'a': 1}
methods['own']['seeds'] = [7]
methods['own']['pooled'] = False
methods['own']['paper'] = 'resnet164_se_cifar10'
''', seeds=[0, 1], own={'a': 2}, other={})
    own, other = study.methods
    assert own.options == {'train_cfg.max_epochs': 3, 'a': 2}
    assert (own.seeds, other.seeds) == ([7], [0, 1])
    assert (own.paper, other.paper) == ('resnet164_se_cifar10', None)
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
    assert len(set(settings[:5])) == 1
    assert len(set(settings)) == 4


def test_configs_are_named_from_here(tmp_path, monkeypatch):
    (tmp_path / 'studies').mkdir()
    make_study(tmp_path)
    text = (tmp_path / 'made.py').read_text()
    (tmp_path / 'studies/made.py').write_text(
        text.replace("'config.py'", "'../config.py'"))
    monkeypatch.chdir(tmp_path)
    method, = read_study('studies/made.py').methods
    assert str(method.config) == 'config.py'


@pytest.mark.parametrize('text, key', [
    ('methods = {}', 'methods'), ('methods = [1]', 'methods'),
    ('steps = 3', 'steps'), ("methods['good'] = 3", 'methods.good'),
    ("methods['a/b'] = methods['good']", 'methods: .*a/b'),
    ("methods['a_seed1'] = methods['good']", 'methods: .*a_seed1'),
    ("methods['good']['paper'] = 'gone'", 'methods.good.paper'),
    ("methods['good']['seed'] = 3", 'methods.good.seed'),
    ("methods['good']['seeds'] = [1, 1]", 'methods.good.seeds'),
    ("metric = ''", 'metric'), ('pooled = 1', 'pooled'),
    ('baselines = [1]', 'baselines'),
    ('measure = dict(samples=3)', 'measure.samples'),
    ('measure = dict(num_samples=0)', 'measure: expected num_samples'),
    ("measure = dict(definitions=['nsi'])", 'measure: .*nsi'),
    ('measure = dict(ablate_steps=1)', 'measure.ablate_steps'),
    ('measure = dict(robustness=1)', 'measure.robustness'),
    ('1 / 0', '.*ZeroDivisionError')])
def test_wrong_studies(tmp_path, text, key):
    with pytest.raises(ValueError, match=f'made.py: {key}'):
        make_study(tmp_path, text)


def test_files_that_are_gone(tmp_path):
    with pytest.raises(FileNotFoundError, match='gone.py'):
        read_study(tmp_path / 'gone.py')
    with pytest.raises(FileNotFoundError, match=(
            'methods.good.config: .*gone.py')):
        make_study(tmp_path, "methods['good']['config'] = 'gone.py'")


def test_an_option_of_something_else(make_runs):
    run, = make_runs(good={'behaviour.a': 1})
    with pytest.raises(ValueError, match='methods.good'):
        run.config()
