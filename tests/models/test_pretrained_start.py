"""Where steps start: as published, at 1 in pretrained blocks, as loaded."""
import copy

import pytest
import torch
from equality import BOTH
from mmengine.registry import MODELS
from toy_run import toy_runner

from stepnet_mm.models import backbone as backbone_module

SMALL = dict(depth=18, base_channels=8, stem_channels=8,
             out_indices=(0, 1, 2, 3))


def build(models, kind='StepResNet', **kwargs):
    return models.build(dict(type=kind, **SMALL, **kwargs))


def plain(models, kind='ResNet'):
    """A plain network whose norms are not at their start."""
    net = build(models, kind)
    for value in net.state_dict().values():
        if value.dim() == 1:
            torch.nn.init.uniform_(value, .5, 1.5)
    net.eval()
    return net


def saved(path, state, prefix=''):
    state = {prefix + key: value for key, value in state.items()}
    torch.save(dict(state_dict=state), path)
    return str(path)


def pretrained(models, state, path):
    load = dict(type='Pretrained', checkpoint=saved(path, state))
    net = build(models, init_cfg=load, frozen_stages=1)
    net.init_weights()
    return net


def assert_equal(ours, theirs):
    ours.eval(), theirs.eval()
    x = torch.randn(2, 3, 64, 64)
    for a, b in zip(ours(x), theirs(x)):
        assert torch.equal(a, b)


@pytest.mark.core
@BOTH
def test_weights_of_a_plain_network_start_the_steps_at_one(models, tmp_path):
    source = plain(models)
    net = pretrained(models, source.state_dict(), tmp_path / 'a.pth')
    for step in net.steps():
        assert (step.ie.bias == 0).all() and step.max_step == 2
    assert_equal(net, source)
    net.train()
    assert len(net(torch.randn(2, 3, 32, 32))) == 4  # no error in stage 1


def test_a_step_net_brings_its_own_back(models):
    source, net = build(models), build(models)
    for step in source.steps():
        torch.nn.init.normal_(step.ie.weight)
    net.load_state_dict(plain(models).state_dict(), strict=False)
    net.load_state_dict(source.state_dict())
    assert all((step.ie.bias == -1).all() and step.max_step == 1
               for step in net.steps())
    assert_equal(net, source)
    # And keeps them, should a plain network's weights come after it.
    net.load_state_dict(plain(models).state_dict(), strict=False)
    assert all(step.max_step == 1 for step in net.steps())
    # A block that it had plain stays plain.
    net = build(models, step_blocks='all')
    net.load_state_dict(source.state_dict(), strict=False)
    assert_equal(net, source)


@pytest.mark.parametrize('step', [
    dict(type='StepAdaptor', init_step=.5),
    dict(type='SEAttention', reduction=8)])
def test_other_starts_stay_and_are_an_error_in_frozen_stages(models, step):
    net = build(models, frozen_stages=1, step=step)
    before = copy.deepcopy([part.state_dict() for part in net.steps()])
    net.load_state_dict(plain(models).state_dict(), strict=False)
    for part, start in zip(net.steps(), before):
        assert all(map(torch.equal, part.state_dict().values(),
                       start.values()))
    x = torch.randn(2, 3, 32, 32)
    net.eval()(x)
    net.train()
    with pytest.raises(ValueError, match=f'untrained {step["type"]} modules '
                       'with frozen_stages=1.*init_step=1'):
        net(x)
    net.load_state_dict(net.state_dict())
    assert len(net(x)) == 4


def test_it_is_decided_block_by_block(models):
    state = plain(models).state_dict()
    state = {key: value for key, value in state.items()
             if not key.startswith('layer2')}
    state['layer3.1.conv1.weight'] = torch.ones(1)
    state['layer4.1.step.fc.weight'] = torch.ones(1)  # another kind of step
    net = build(models)
    drawn = torch.get_rng_state()
    with pytest.raises(RuntimeError, match='size mismatch'):
        net.load_state_dict(state, strict=False)
    assert torch.equal(torch.get_rng_state(), drawn)  # some ranks may load
    assert [step.init_step == 1 for step in net.steps()] == [
        True, True, False, False, False]


def test_what_init_cfg_loads_stays_loaded(models, tmp_path):
    source = build(models)
    for step in source.steps():
        torch.nn.init.normal_(step.ie.weight)
    net = pretrained(models, source.state_dict(), tmp_path / 'a.pth')
    for mine, its in zip(net.steps(), source.steps()):
        assert mine.loaded and torch.equal(mine.ie.weight, its.ie.weight)


@pytest.fixture
def lines(monkeypatch):
    """What backbones log."""
    lines = []
    monkeypatch.setattr(backbone_module, 'print_log',
                        lambda text, logger: lines.append(text))
    return lines


def test_the_start_is_logged_once(models, lines):
    net = build(models)
    for _ in range(2):
        net.train()
        net.eval()
    build(models, step=[dict(type='StepAdaptor', init_step=.5), 'ToyStep',
                        None, None]).train()
    build(models, step=None).train()
    published, mixed = lines
    assert '5 StepAdaptor start at 0.2689 (as published' in published
    assert '2 StepAdaptor start at 0.5 (as backbone.step says); 2 ' in mixed


@pytest.mark.core
def test_a_run(tmp_path, lines):
    """With EMA, whose copy is made before anything is loaded; resumed too."""
    source = plain(MODELS, 'mmpretrain.ResNet')
    file = saved(tmp_path / 'a.pth', source.state_dict(), 'backbone.')
    backbone = dict(type='mmpretrain.StepResNet', frozen_stages=1,
                    norm_eval=True, **SMALL)
    for iterations, how, logged in (
            (1, dict(load_from=file), 'start at 1 (a checkpoint'),
            (2, dict(resume=True), 'start as a checkpoint has them')):
        runner = toy_runner(
            tmp_path / 'work', [dict(type='EMAHook')], iterations, backbone,
            optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.)), **how)
        net = runner.train()
        averaged, = [hook.ema_model.module for hook in runner.hooks
                     if hasattr(hook, 'ema_model')]
        for each in (net, averaged):
            assert_equal(each.backbone, source)
        line = lines.pop()
        assert logged in line and not lines
