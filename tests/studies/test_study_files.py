"""Every study file of the repository can be planned and built."""
import copy
import functools
from pathlib import Path

import pytest
import torch
from mmengine.registry import init_default_scope

from stepnet_mm.config import read_config
from stepnet_mm.launch.entry import build_model
from stepnet_mm.studies.run import config_digest, runs_of
from stepnet_mm.studies.study import read_study

pytestmark = pytest.mark.core

ROOT = Path(__file__).resolve().parents[2]
PATHS = sorted((ROOT / 'configs/studies').glob('*.py'))
SMALL = [path.stem for path in PATHS if '16px' in path.stem]
PAPER = [path.stem for path in PATHS if path.stem not in SMALL]
#: Of studies that have records, which would not compare with other settings.
SETTINGS = dict(cifar10_16px_modules='aae74d23f4d2')


@functools.cache
def runs(name):
    """The first run of each method."""
    study = read_study(ROOT / f'configs/studies/{name}.py')
    return {run.method.name: run
            for run in runs_of(study, Path('work_dirs'))[::-1]}


METHODS = [(name, method) for name in SMALL for method in runs(name)]


def load(name, method):
    cfg = runs(name)[method].config()
    pytest.importorskip(cfg.default_scope)
    init_default_scope(cfg.default_scope)
    return cfg


def test_there_are_studies():
    assert len(PAPER) >= 11 and len(SMALL) >= 5


@pytest.mark.parametrize('name', SMALL)
def test_every_method_is_another_config(name):
    found = {config_digest(run.config()) for run in runs(name).values()}
    assert len(found) == len(runs(name))


@pytest.mark.parametrize('name', PAPER)
def test_the_papers_studies_run_the_configs_as_they_are(name):
    """tests/test_configs.py reads and builds these."""
    for run in runs(name).values():
        assert run.method.options == {}
        assert run.method.paper == run.method.config.stem


@pytest.mark.parametrize('name', ['table1_cifar10', 'table3_coco'])
def test_the_digest_is_that_of_the_config_itself(name):
    run = runs(name)[next(iter(runs(name)))]
    own = read_config(str(run.method.config))
    assert config_digest(run.config()) == config_digest(own)
    assert config_digest(run.config()) != config_digest(
        read_config(str(run.method.config), options={'model.extra': 1}))


def test_settings_of_a_study_that_has_records_stay():
    for name, settings in SETTINGS.items():
        assert read_study(
            ROOT / f'configs/studies/{name}.py').settings == settings


@pytest.mark.parametrize('name', SMALL)
def test_all_methods_see_the_same_data_for_as_long(name):
    found = [load(name, method) for method in runs(name)]
    assert len({cfg.train_cfg.max_epochs for cfg in found}) == 1
    assert len({repr(cfg.train_dataloader) for cfg in found}) == 1


@pytest.mark.parametrize('name, method', METHODS)
def test_a_small_network_learns_from_its_size_of_image(name, method):
    cfg = copy.deepcopy(load(name, method))
    model = build_model(cfg).train()
    from mmpretrain.structures import DataSample
    samples = [DataSample().set_gt_label(label) for label in (3, 7)]
    losses = model.loss(torch.randn(2, 3, 16, 16), samples)
    losses['loss'].backward()
    assert losses['loss'].isfinite()
    missing = [key for key, p in model.named_parameters() if p.grad is None]
    assert not missing
