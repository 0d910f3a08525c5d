from types import SimpleNamespace

import pytest
import torch
from mmengine.model import BaseTTAModel
from mmengine.registry import MODELS
from mmengine.runner import FlexibleRunner, Runner
from mmengine.runner.checkpoint import load_state_dict
from torch import nn
from toy_run import VALIDATION, ToyModel, toy_runner

from stepnet_mm.hooks import LoadReportHook
from stepnet_mm.hooks.load_report_hook import WholeLoadHook
from stepnet_mm.steps import StepAdaptor


def detector():
    return nn.ModuleDict(dict(
        backbone=nn.Sequential(
            nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), StepAdaptor(4)),
        roi_head=nn.Linear(4, 2)))


@pytest.fixture
def run():
    """A net under the hook, and the lines that it logs."""
    lines, warnings, net, hook = [], [], detector(), LoadReportHook()
    runner = SimpleNamespace(model=net, logger=SimpleNamespace(
        info=lines.append, warning=warnings.append))
    hook.before_run(runner)
    return SimpleNamespace(net=net, hook=hook, runner=runner, lines=lines,
                           warnings=warnings)


def without(*words, net=None):
    state = (net or detector()).state_dict()
    return {key: value for key, value in state.items()
            if not any(word in key for word in words)}


def changed(key, *shape):
    return dict(without(), **{key: torch.zeros(*shape)})


@pytest.mark.core
def test_steps_heads_and_classifiers_are_reported(run):
    run.net.backbone.conv_offset = nn.Linear(1, 1)
    load_state_dict(run.net, without('.2.', '0.bias', 'num_batches') | {
        'roi_head.weight': torch.zeros(3, 4), 'fc.weight': torch.zeros(2, 4),
        'backbone.0.bias': torch.zeros(4)})
    line, = run.lines
    assert not run.warnings
    assert line.endswith('7 keys loaded, 8 new in step modules, 3 other new, '
                         '1 unused in the source')


@pytest.mark.parametrize('state, words', [
    (changed('neck', 1), '1 unused: neck'),
    (changed('backbone.0.bias', 3),
     '1 new: backbone.0.bias (source (3,), model (4,))')])
def test_other_keys_are_warned_of_unless_allowed(run, state, words):
    load_state_dict(run.net, state)
    line, = run.warnings
    assert words in line
    run.hook.__init__(allow_new=[r'\.0\.bias'], allow_unused=['^neck'])
    load_state_dict(run.net, state)
    assert len(run.warnings) == 1


@pytest.mark.parametrize('whole', [True, False])
def test_a_backbone_that_gets_nothing_is_an_error(run, whole):
    part = run.net if whole else run.net.backbone
    state = {f'other.{key}': value for key, value in part.state_dict().items()}
    with pytest.raises(ValueError, match='backbone: .*allow_new'):
        load_state_dict(part, state)
    run.hook.__init__(allow_new=['.*'])
    load_state_dict(part, state)


@pytest.mark.parametrize('start', ['before_train', 'before_test'])
def test_it_listens_only_until_the_start(run, start):
    run.hook.before_run(run.runner)  # again, as in a training after another
    getattr(run.hook, start)(run.runner)
    assert not run.net._load_state_dict_pre_hooks
    assert not run.net._load_state_dict_post_hooks


SMALL = dict(depth=18, base_channels=8, stem_channels=8)


@pytest.mark.core
def test_pretrained_in_a_run(tmp_path, monkeypatch):
    source = MODELS.build(dict(type='mmpretrain.ResNet', **SMALL))
    torch.save(source.state_dict(), tmp_path / 'a.pth')
    load = dict(type='Pretrained', checkpoint=str(tmp_path / 'a.pth'))
    runner = toy_runner(
        tmp_path / 'work', [dict(type='LoadReportHook')], 1,
        dict(type='mmpretrain.StepResNet', init_cfg=load, **SMALL))
    lines = []
    monkeypatch.setattr(runner.logger, 'info', lines.append)
    runner.train()
    line, = [line for line in lines if 'LoadReportHook' in line]
    count = len(without('num_batches_tracked', net=source))
    assert f'backbone: {count} keys loaded' in line


def strict(*allow_missing):
    """A net under the hook of tools/test.py."""
    net, hook = detector(), WholeLoadHook(*allow_missing)
    hook.before_run(SimpleNamespace(model=net))
    return net


@pytest.mark.core
@pytest.mark.parametrize('state, allowed, named', [
    (without('backbone.0'), '', 'backbone.0'),
    (changed('roi_head.weight', 3, 4), '^roi_head',
     r'roi_head.weight \(source \(3, 4')])
def test_a_test_needs_all_weights_that_are_not_allowed(state, allowed, named):
    with pytest.raises(ValueError, match='CHECKPOINT: expected weights for '
                       f'all of ModuleDict, got none .*{named}'):
        load_state_dict(strict(), state)
    load_state_dict(strict(allowed), state)


class Augmented(BaseTTAModel):

    def merge_preds(self, data_samples_list):
        return data_samples_list


@pytest.mark.core
@pytest.mark.parametrize('kind, wrap', [
    (FlexibleRunner, lambda model: model), (Runner, Augmented)])
def test_a_test_by_each_runner(tmp_path, kind, wrap):
    model = ToyModel(dict(type='mmpretrain.StepResNet', **SMALL))
    path = str(tmp_path / 'part.pth')
    torch.save(dict(state_dict=without('layer4', net=model)), path)
    runner = kind(wrap(model), work_dir=str(tmp_path), load_from=path,
                  log_level='ERROR', experiment_name=f'{tmp_path}',
                  **{f'test_{key[4:]}': value
                     for key, value in VALIDATION.items()})
    runner.register_hook(WholeLoadHook())
    with pytest.raises(ValueError, match='CHECKPOINT: .*layer4'):
        runner.test()


def test_a_test_takes_renamed_and_further_keys():
    net = strict()

    def rename(state_dict, prefix, *_):
        state_dict[f'{prefix}weight'] = state_dict.pop(f'{prefix}old')

    net.roi_head._register_load_state_dict_pre_hook(rename)
    state = without('num_batches_tracked', 'roi_head.weight')
    state['roi_head.old'] = torch.ones(2, 4)
    state['teacher.weight'] = torch.zeros(1)  # mmengine logs it
    load_state_dict(net, state)
    assert net.roi_head.weight.eq(1).all()
