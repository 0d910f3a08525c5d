from types import SimpleNamespace

import pytest
import torch
from mmengine.logging import MMLogger
from mmengine.model import BaseModel, BaseTTAModel
from mmengine.registry import MODELS
from mmengine.runner import FlexibleRunner, Runner
from mmengine.runner.checkpoint import load_checkpoint, load_state_dict
from torch import nn
from toy_run import VALIDATION, ToyModel, toy_runner

from stepnet_mm.hooks import LoadReportHook
from stepnet_mm.hooks.load_report_hook import WholeLoadHook
from stepnet_mm.steps import StepAdaptor


class Net(nn.Module):

    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), StepAdaptor(4))
        self.roi_head = nn.Linear(4, 2)


@pytest.fixture
def run(monkeypatch):
    """A net under the hook, and the lines that it logs."""
    lines, warnings = [], []
    logger = MMLogger.get_instance('load_report', log_level='INFO')
    monkeypatch.setattr(logger, 'info', lines.append)
    monkeypatch.setattr(logger, 'warning', warnings.append)
    net, hook = Net(), LoadReportHook()
    runner = SimpleNamespace(model=net, logger=logger)
    hook.before_run(runner)
    return SimpleNamespace(net=net, hook=hook, runner=runner, lines=lines,
                           warnings=warnings)


def without(state, *words):
    return {
        key: value
        for key, value in state.items() if not any(w in key for w in words)
    }


@pytest.mark.core
def test_new_steps_and_heads_are_reported(run):
    load_state_dict(run.net, without(Net().state_dict(), '.2.', 'head'))
    line, = run.lines
    assert '6 keys loaded' in line
    assert 'backbone.2.ie.bias' in line and 'roi_head.weight' in line


def test_pretrained_backbone_alone(run, tmp_path):
    state = without(Net().backbone.state_dict(), '2.')
    state['fc.weight'] = torch.zeros(2, 4)
    torch.save(state, tmp_path / 'a.pth')
    load_checkpoint(run.net.backbone, str(tmp_path / 'a.pth'))
    line, = run.lines
    assert line.startswith('LoadReportHook: backbone: 6 keys loaded')
    assert '1 unused in the source (fc.weight)' in line


@pytest.mark.parametrize('change, words', [
    (lambda state: state.pop('backbone.0.bias'), ['new', 'backbone.0.bias']),
    (lambda state: state.update(neck=torch.zeros(1)), ['unused', 'neck']),
    (lambda state: state.update({'backbone.0.bias': torch.zeros(3)}),
     ['new', 'backbone.0.bias (source (3,), model (4,))'])])
def test_what_does_not_fit_is_warned_of(run, change, words):
    state = Net().state_dict()
    change(state)
    load_state_dict(run.net, state)
    line, = run.warnings
    assert all(word in line for word in words)


def test_a_head_of_another_shape_is_new(run):
    state = Net().state_dict()
    state['roi_head.weight'] = torch.zeros(3, 4)
    load_state_dict(run.net, state)
    line, = run.lines
    assert '1 other new (roi_head.weight (source (3, 4), model (2, 4)))' in (
        line) and not run.warnings


def test_exceptions_can_be_named(run):
    run.hook.__init__(allow_new=[r'\.0\.bias'], allow_unused=['^neck'])
    load_state_dict(run.net, without(dict(
        Net().state_dict(), neck=torch.zeros(1)), '0.bias'))
    assert run.lines and not run.warnings


def test_offsets_of_dcn_may_be_new(run):
    run.net.backbone.conv_offset = nn.Linear(1, 1)
    load_state_dict(run.net, Net().state_dict())
    assert not run.warnings


@pytest.mark.parametrize('whole', [True, False])
def test_a_backbone_that_gets_nothing_is_an_error(run, whole):
    part = run.net if whole else run.net.backbone
    state = {f'other.{key}': value
             for key, value in part.state_dict().items()}
    with pytest.raises(ValueError, match='backbone: .*allow_new'):
        load_state_dict(part, state)
    run.hook.__init__(allow_new=['.*'])
    load_state_dict(part, state)


def test_num_batches_tracked_may_lack(run):
    load_state_dict(run.net,
                    without(Net().state_dict(), 'num_batches_tracked'))
    assert len(run.lines) == 1


@pytest.mark.parametrize('start, runs', [
    ('before_train', 2), ('before_val', 1), ('before_test', 1)])
def test_it_listens_only_until_the_start(run, start, runs):
    for _ in range(1, runs):
        run.hook.before_run(run.runner)
    getattr(run.hook, start)(run.runner)
    run.lines.clear()
    load_state_dict(run.net, {'a': torch.zeros(1)})
    assert not run.lines


def test_nothing_loaded_is_said(run):
    run.hook.before_train(run.runner)
    assert 'nothing was loaded' in run.lines[0]


def test_a_wrapped_model_is_reported_once(run):
    from mmengine.model import MMDistributedDataParallel as DDP

    class Wrapper(DDP):

        def __init__(self, module):
            nn.Module.__init__(self)
            self.module = module

    wrapped = Wrapper(run.net)
    load_state_dict(wrapped, Net().state_dict())
    assert len(run.lines) == 1


@pytest.mark.core
def test_pretrained_in_a_run(tmp_path, monkeypatch):
    pytest.importorskip('mmpretrain')
    small = dict(depth=18, base_channels=8, stem_channels=8)
    source = MODELS.build(dict(type='mmpretrain.ResNet', **small))
    state = dict(source.state_dict(), **{'fc.weight': torch.zeros(2, 64)})
    torch.save(state, tmp_path / 'a.pth')
    load = dict(type='Pretrained', checkpoint=str(tmp_path / 'a.pth'))
    runner = toy_runner(
        tmp_path / 'work', [dict(type='LoadReportHook')], 1,
        dict(type='mmpretrain.StepResNet', init_cfg=load, **small))
    lines = []
    monkeypatch.setattr(runner.logger, 'info', lines.append)
    runner.train()
    line, = [line for line in lines if 'LoadReportHook' in line]
    count = len(without(source.state_dict(), 'num_batches_tracked'))
    assert f'backbone: {count} keys loaded' in line
    assert 'new in step modules (layer1.0.step.conv_weight' in line
    assert '1 unused in the source (fc.weight)' in line


@pytest.fixture
def strict():
    """strict(allow_missing): a net under the hook of tools/test.py"""

    def make(*allow_missing):
        net, hook = Net(), WholeLoadHook(*allow_missing)
        logger = MMLogger.get_instance('load_report', log_level='INFO')
        hook.before_run(SimpleNamespace(model=net, logger=logger))
        return net

    return make


@pytest.mark.core
@pytest.mark.parametrize('absent', ['backbone.0', 'head'])
def test_a_test_needs_all_weights(strict, absent):
    state = without(Net().state_dict(), absent)
    with pytest.raises(ValueError, match='CHECKPOINT: expected weights for '
                       r'all of Net, got none .*--allow-missing \[PATTERN\]'):
        load_state_dict(strict(), state)
    load_state_dict(strict(''), state)
    load_state_dict(strict(absent), state)


@pytest.mark.core
def test_a_wrapper_of_augmented_tests_needs_all_weights():
    class Augmented(BaseTTAModel):
        def merge_preds(self, data_samples_list):
            return data_samples_list

    class Model(BaseModel):
        def __init__(self):
            super().__init__()
            self.net = Net()

        def forward(self, inputs, data_samples=None, mode='tensor'):
            return inputs

    model = Augmented(Model())
    WholeLoadHook().before_run(SimpleNamespace(model=model))
    with pytest.raises(ValueError, match='CHECKPOINT: .* of Model'):
        load_state_dict(model, without(Model().state_dict(), 'backbone.0'))
    load_state_dict(model, Model().state_dict())


@pytest.mark.core
@pytest.mark.parametrize('kind', [Runner, FlexibleRunner])
def test_a_test_by_each_runner(tmp_path, kind):
    pytest.importorskip('mmpretrain')
    state = small_model().state_dict()
    torch.save(dict(state_dict=state), tmp_path / 'whole.pth')
    torch.save(dict(state_dict=without(state, 'layer4')),
               tmp_path / 'part.pth')

    def run(name):
        runner = kind(small_model(), work_dir=str(tmp_path / 'work'),
                      load_from=str(tmp_path / name), log_level='ERROR',
                      experiment_name=f'{kind.__name__}_{name}',
                      **{f'test_{key[4:]}': value
                         for key, value in VALIDATION.items()})
        runner.register_hook(WholeLoadHook())
        return runner.test()

    assert run('whole.pth') == dict(count=16)
    with pytest.raises(ValueError, match='CHECKPOINT: .*layer4'):
        run('part.pth')


def small_model():
    return ToyModel(dict(type='mmpretrain.StepResNet', depth=18,
                         base_channels=8, stem_channels=8))


def test_it_listens_only_until_the_test():
    net, hook = Net(), WholeLoadHook()
    runner = SimpleNamespace(model=net)
    hook.before_run(runner)
    hook.before_test(runner)
    net.load_state_dict({}, strict=False)
    assert not net._load_state_dict_pre_hooks
    assert not net._load_state_dict_post_hooks


def test_a_test_takes_its_own_and_more(strict):
    state = without(Net().state_dict(), 'num_batches_tracked')
    state['teacher.weight'] = torch.zeros(1)  # mmengine logs it
    load_state_dict(strict(), state)


def test_a_head_of_another_class_count_is_named(strict):
    state = Net().state_dict()
    state['roi_head.weight'] = torch.zeros(3, 4)
    with pytest.raises(ValueError, match=r'roi_head.weight \(source \(3, 4'):
        load_state_dict(strict(), state)
    load_state_dict(strict('^roi_head'), state)


def test_a_module_that_renames_its_old_keys_is_no_miss(strict):
    net = strict()

    def rename(state_dict, prefix, *_):
        state_dict[f'{prefix}weight'] = state_dict.pop(f'{prefix}old')

    net.roi_head._register_load_state_dict_pre_hook(rename)
    state = Net().state_dict()
    weight = state['roi_head.old'] = state.pop('roi_head.weight')
    load_state_dict(net, state)
    assert torch.equal(net.roi_head.weight, weight)
