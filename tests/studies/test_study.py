"""What a study file says, and what is wrong with one."""
import pytest
from made_study import make_study

from stepnet_mm.studies.study import read_study

pytestmark = pytest.mark.core


def test_options_and_seeds_of_the_study_and_of_a_method(tmp_path):
    study = make_study(tmp_path, '''
options = {'train_cfg.max_epochs': 3, 'a': 1}
methods['own']['seeds'] = [7]
methods['own']['paper'] = 'resnet164_se_cifar10'
seconds = 60
''', seeds=[0, 1], own={'a': 2}, other={})
    own, other = study.methods
    assert own.options == {'train_cfg.max_epochs': 3, 'a': 2}
    assert (own.seeds, other.seeds) == ([7], [0, 1])
    assert (own.paper, other.paper) == ('resnet164_se_cifar10', None)
    assert (study.seconds, study.name) == (60, 'made')
    assert study.measure == dict(
        num_samples=2000, definitions=['residual'], ablate_steps=False,
        robustness=False)


def test_settings_change_with_what_methods_share_only(tmp_path):
    settings = [make_study(tmp_path, text, **methods).settings
                for text, methods in (
                    ('', {}), ('measure = dict(ablate_steps=True)', {}),
                    ('measure = dict(robustness=True)', {}),
                    ('seconds = 1', dict(other={'a': 1})),
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


@pytest.mark.parametrize('text, message', [
    ('methods = {}', r'methods: expected a config for each name, got \{\}'),
    ('methods = [1]', r'methods: expected a dict, got \[1\]'),
    ('steps = 3', r"the study: expected some of \['methods', .*got \['steps"),
    ("methods['good'] = 3", 'methods.good: expected a dict with config'),
    ("methods['a/b'] = methods['good']", 'methods.a/b: expected a name of'),
    ("methods['a_seed1'] = methods['good']", 'a_seed1: expected a name of'),
    ("methods['a\\n'] = methods['good']", 'methods.a\n: expected a name of'),
    ("methods['ä'] = methods['good']", 'methods.ä: expected a name of'),
    ("methods['a' * 101] = methods['good']", 'expected a name of at most 100'),
    ("methods['good']['paper'] = 3", 'good.paper: expected the name of a con'),
    ("methods['good']['paper'] = 'gone'", "paper: expected .* got 'gone'"),
    ("methods['good']['baseline'] = 3", 'good.baseline: expected the name'),
    ('metric = 3', 'metric: expected what is compared, .* got 3'),
    ("metric = ''", 'metric: expected what is compared'),
    ("methods['good']['seed'] = 3", r"methods.good: .*got \['seed'\]"),
    ("methods['good']['seeds'] = [1, 1]", r'seeds: expected different'),
    ('seeds = 3', 'seeds: expected different numbers from 0, got 3'),
    ('options = 3', 'options: expected a dict, got 3'),
    ('seconds = -1', 'seconds: expected a time, got -1'),
    ("baselines = 'plain'", "baselines: expected names of .*got 'plain'"),
    ('baselines = [1]', r'baselines: expected names of methods, got \[1\]'),
    ('measure = dict(samples=3)', r"measure: .*got \['samples'\]"),
    ('measure = dict(num_samples=0)', 'num_samples: expected a number from'),
    ("measure = dict(definitions=['nsi'])", 'definitions: expected some of'),
    ('measure = dict(ablate_steps=1)', 'ablate_steps: expected True or False'),
    ('measure = dict(robustness=1)', 'robustness: expected True or False'),
    ('methods = ', r'expected a study file in Python, got SyntaxError'),
    ("_base_ = 'gone.py'", r'expected a study file in Python, got .*gone'),
    ('1 / 0', 'expected a study file in Python, got ZeroDivisionError'),
])
def test_wrong_studies(tmp_path, text, message):
    with pytest.raises(ValueError, match=f'made.py: .*{message}'):
        make_study(tmp_path, text)


def test_files_that_are_gone(tmp_path):
    with pytest.raises(FileNotFoundError, match='expected a study file'):
        read_study(tmp_path / 'gone.py')
    with pytest.raises(FileNotFoundError, match=(
            'methods.good.config: expected a config file, got .*gone.py')):
        make_study(tmp_path, "methods['good']['config'] = 'gone.py'")


def test_a_config_whose_base_is_gone(make_runs, tmp_path):
    run, = make_runs()
    (tmp_path / 'config.py').write_text("_base_ = './gone.py'")
    with pytest.raises(ValueError, match=(
            'methods.good: expected a config and options that fit it, got .*'
            'gone.py')):
        run.config()


def test_an_option_of_something_else(make_runs):
    run, = make_runs(good={'behaviour.a': 1})
    with pytest.raises(ValueError, match='methods.good: expected a config'):
        run.config()
