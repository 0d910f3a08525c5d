"""Every study file of the repository can be planned and built."""
import copy
import functools
from pathlib import Path

import pytest
import torch
from block_choice import random_blocks, step_blocks
from mmengine.registry import init_default_scope
from study_file import read_study, runs_of
from study_records import dataset_of, evaluated_on

from stepnet_mm.config import read_config
from stepnet_mm.config.digests import config_digest
from stepnet_mm.launch.entry import build_model
from stepnet_mm.stiffness import RecordHeader

ROOT = Path(__file__).resolve().parents[2]
PATHS = sorted((ROOT / 'configs/studies').glob('*.py'))
SMALL = [path.stem for path in PATHS if '16px' in path.stem]
PAPER = [path.stem for path in PATHS if path.stem.startswith(('table', 'fig'))]
OWN = [path.stem for path in PATHS if path.stem not in PAPER]
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


def test_settings_of_a_study_that_has_records_stay():
    study = read_study(ROOT / 'configs/studies/cifar10_16px_modules.py')
    assert study.settings == 'aae74d23f4d2'


@pytest.mark.long
@pytest.mark.parametrize('name', BESIDE)
def test_studies_whose_rows_stand_beside_others_compare(name):
    ours, theirs = (read_study(ROOT / f'configs/studies/{stem}.py')
                    for stem in (name, BESIDE[name]))
    assert ours.settings == theirs.settings
    assert not {m.name for m in ours.methods} & {
        m.name for m in theirs.methods}
    first = [next(iter(runs(study).values()))
             for study in (name, BESIDE[name])]
    assert len({evaluated_on(dataset_of(run.config())) for run in first}) == 1


def test_fig_8_has_all_tricks_without_and_with_steps():
    for dataset in ('cifar10', 'cifar100'):
        tricks = {path.stem for path in ROOT.glob(
            f'configs/tricks/*_{dataset}.py')}
        found = [run.method.paper for run in runs(f'fig8_{dataset}').values()]
        assert len(found) == 18 and set(found) == tricks


def test_averaged_weights_forget_their_start():
    for method in ('plain_ema', 'stepnet_ema'):
        hook = configs('cifar10_16px_tricks')[method].custom_hooks[1]
        assert hook.type == 'EMAHook'
        assert (1 - hook.momentum) ** (5 * 50_000 / 128) < 1e-4


def test_blocks_of_the_tickets():
    stage = [s for s in (1, 2, 3) for _ in range(5)]
    index = 3 * [1, 2, 3, 4, 5]
    header = RecordHeader(
        'residual', [f'{s}.{i}' for s, i in zip(stage, index)], stage, index,
        1)
    for k in (3, 6):
        stiffest, random = (
            configs('cifar10_16px_tickets')[f'se_{kind}{k}'].model.backbone
            for kind in ('stiffest', 'random'))
        assert random.step_blocks == step_blocks(
            random_blocks(header, k, 0), 3)
        assert sum(map(len, stiffest.step_blocks)) == k


@pytest.mark.parametrize('name', [pytest.param(
    name, marks=() if name.endswith('_inputs') else pytest.mark.long)
    for name in OWN])
def test_methods_of_a_study_differ_and_see_the_same_data(name):
    own = configs(name).values()
    assert len({*map(config_digest, own)}) == len(own) > 1
    assert len({evaluated_on(dataset_of(cfg)) for cfg in own}) == 1
    assert len({repr(cfg.train_cfg) for cfg in own}) == 1
    assert len({repr(cfg.train_dataloader) for cfg in own}) == 1


@pytest.mark.long
@pytest.mark.parametrize('name', [
    pytest.param(name, marks=[pytest.mark.core] * name.endswith('tricks'))
    for name in SMALL])
def test_a_small_network_learns_from_its_size_of_image(name):
    """The study's last method; check_runs builds each before it runs."""
    pytest.importorskip('mmpretrain')
    from mmpretrain.structures import DataSample
    cfg = copy.deepcopy([*configs(name).values()][-1])
    init_default_scope(cfg.default_scope)
    model = build_model(cfg).train()
    samples = [DataSample().set_gt_label(label) for label in (3, 7)]
    losses = model.loss(torch.randn(2, 3, 16, 16), samples)
    losses['loss'].backward()
    assert losses['loss'].isfinite()
    missing = [key for key, p in model.named_parameters() if p.grad is None]
    assert not missing
