from types import SimpleNamespace

import pytest
import torch
from mmengine.logging import MMLogger
from mmengine.registry import MODELS
from mmengine.runner.checkpoint import load_checkpoint, load_state_dict
from torch import nn

from stepnet_mm.hooks import LoadReportHook
from stepnet_mm.hooks.load_report_hook import WholeLoadHook, load_report
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
    lines = []
    logger = MMLogger.get_instance('load_report', log_level='INFO')
    monkeypatch.setattr(logger, 'info', lines.append)
    net, hook = Net(), LoadReportHook()
    runner = SimpleNamespace(model=net, logger=logger)
    hook.before_run(runner)
    return SimpleNamespace(net=net, hook=hook, runner=runner, lines=lines)


def without(state, *words):
    return {
        key: value
        for key, value in state.items() if not any(w in key for w in words)
    }


@pytest.mark.core
def test_new_steps_and_heads_are_reported(run):
    load_state_dict(run.net, without(Net().state_dict(), '.2.', 'head'))
    line, = run.lines
    assert '7 keys loaded' in line
    assert 'backbone.2.ie.bias' in line and 'roi_head.weight' in line


def test_pretrained_backbone_alone(run, tmp_path):
    state = without(Net().backbone.state_dict(), '2.')
    state['fc.weight'] = torch.zeros(2, 4)
    torch.save(state, tmp_path / 'a.pth')
    load_checkpoint(run.net.backbone, str(tmp_path / 'a.pth'))
    line, = run.lines
    assert line.startswith('LoadReportHook: backbone: 7 keys loaded')
    assert '1 unused in the source (fc.weight)' in line


def test_a_missing_key_is_an_error(run):
    with pytest.raises(ValueError, match=r'missing: backbone\.0\.bias'):
        load_state_dict(run.net, without(Net().state_dict(), '0.bias'))


def test_an_unused_key_is_an_error(run):
    state = dict(Net().state_dict(), neck=torch.zeros(1))
    with pytest.raises(ValueError, match='unused: neck'):
        load_state_dict(run.net, state)


def test_a_shape_mismatch_is_an_error_even_in_a_head(run):
    state = Net().state_dict()
    state['roi_head.weight'] = torch.zeros(3, 4)
    with pytest.raises(ValueError, match=r'roi_head.weight.*3, 4.*2, 4'):
        load_state_dict(run.net, state)


def test_exceptions_can_be_named():
    hook = LoadReportHook(allow_new=[r'\.0\.bias'], allow_unused=['^neck'])
    net = Net()
    state = without(dict(net.state_dict(), neck=torch.zeros(1)), '0.bias')
    hook._check('net', load_report(net, state))
    with pytest.raises(ValueError, match='unused: other'):
        hook._check('net', load_report(net, dict(state, other=state['neck'])))


def test_offsets_of_dcn_may_be_new():
    report = dict(new=['layer2.0.conv2.conv_offset.weight'], unused=[],
                  mismatched=[])
    LoadReportHook()._check('net', report)
    report['new'] += ['layer2.0.conv2.weight']
    with pytest.raises(ValueError, match=r'missing: layer2\.0\.conv2\.weight'):
        LoadReportHook()._check('net', report)


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
    from toy_run import toy_runner
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
    assert f'backbone: {len(source.state_dict())} keys loaded' in line
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


def test_weights_of_version_0_1_0_are_no_miss(run):
    state = {key.replace('ie.', 'ie_'): value
             for key, value in Net().state_dict().items()}
    state['backbone.2.ie_weight'] += 1
    load_state_dict(run.net, state)
    assert run.lines[0].endswith(f'{len(state)} keys loaded')
    assert torch.equal(run.net.backbone[2].ie.weight, torch.ones(4))
