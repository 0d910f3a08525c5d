"""Every study file of the repository can be planned and built."""
import copy
import functools
from pathlib import Path

import pytest
import torch
from mmengine.registry import init_default_scope

from stepnet_mm.analysis import random_blocks, step_blocks
from stepnet_mm.config import read_config
from stepnet_mm.launch.entry import build_model
from stepnet_mm.stiffness import RecordHeader
from stepnet_mm.studies.records import evaluated_on
from stepnet_mm.studies.run import config_digest, runs_of
from stepnet_mm.studies.study import read_study
from stepnet_mm.studies.training_log import dataset_of

pytestmark = pytest.mark.core

ROOT = Path(__file__).resolve().parents[2]
PATHS = sorted((ROOT / 'configs/studies').glob('*.py'))
SMALL = [path.stem for path in PATHS if '16px' in path.stem]
PAPER = [path.stem for path in PATHS if path.stem.startswith(('table', 'fig'))]
OWN = [path.stem for path in PATHS if path.stem not in PAPER]
#: Of studies that have records, which would not compare with other settings.
SETTINGS = dict(cifar10_16px_modules='aae74d23f4d2')
#: Beside whose rows the others' stand.
BESIDE = dict(fig8_cifar10='table1_cifar10', fig8_cifar100='table1_cifar100',
              **{f'cifar10_16px_{part}': 'cifar10_16px_modules'
                 for part in ('inputs', 'preact', 'tickets', 'tricks')})


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
    assert len(PAPER) >= 13 and len(SMALL) >= 7 and len(OWN) > len(SMALL)


@pytest.mark.parametrize('name', OWN)
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


@pytest.mark.parametrize('name, other', BESIDE.items())
def test_studies_whose_rows_stand_beside_others_compare(name, other):
    ours, theirs = (read_study(ROOT / f'configs/studies/{stem}.py')
                    for stem in (name, other))
    assert ours.settings == theirs.settings
    assert not {m.name for m in ours.methods} & {
        m.name for m in theirs.methods}
    configs = [run.config() for study in (name, other)
               for run in runs(study).values()]
    assert len({evaluated_on(dataset_of(cfg)) for cfg in configs}) == 1


@pytest.mark.parametrize('dataset', ['cifar10', 'cifar100'])
def test_fig_8_has_all_tricks_without_and_with_steps(dataset):
    tricks = {path.stem for path in ROOT.glob(
        f'configs/tricks/*_{dataset}.py')}
    found = [method.paper
             for method in read_study(
                 ROOT / f'configs/studies/fig8_{dataset}.py').methods]
    assert len(found) == 18 and set(found) == tricks


def test_averaged_weights_forget_their_start():
    for method in ('plain_ema', 'stepnet_ema'):
        hook = load('cifar10_16px_tricks', method).custom_hooks[1]
        assert hook.type == 'EMAHook'
        assert (1 - hook.momentum) ** (5 * 50_000 / 128) < 1e-4


@pytest.mark.parametrize('k', [3, 6])
def test_blocks_of_the_tickets(k):
    stage = [s for s in (1, 2, 3) for _ in range(5)]
    index = 3 * [1, 2, 3, 4, 5]
    header = RecordHeader(
        'residual', [f'{s}.{i}' for s, i in zip(stage, index)], stage, index,
        1)
    found = {
        kind: load('cifar10_16px_tickets', f'se_{kind}{k}').model.backbone
        for kind in ('stiffest', 'random')}
    assert found['random'].step_blocks == step_blocks(
        random_blocks(header, k, 0), 3)
    assert sum(map(len, found['stiffest'].step_blocks)) == k


@pytest.mark.parametrize('name', OWN)
def test_all_methods_see_the_same_data_for_as_long(name):
    found = [load(name, method) for method in runs(name)]
    assert len({repr(cfg.train_cfg) for cfg in found}) == 1
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
