import copy
import io

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from toy_run import hook_count

from stepnet_mm.recording import TrajectoryRecorder

IMAGES = torch.randn(
    3, 3, 32, 32, generator=torch.Generator().manual_seed(1))


def build(name='StepResNet', depth=18, **kwargs):
    models = pytest.importorskip('mmdet.registry').MODELS
    torch.manual_seed(0)
    model = models.build(dict(
        type=name, depth=depth, base_channels=8, stem_channels=8, **kwargs))
    for parameter_name, parameter in model.named_parameters():
        if parameter_name.endswith(('step.ie.weight', 'step.ie.bias')):
            nn.init.normal_(parameter)
    model.eval()  # mmdet's does not return the model
    return model


def record(model, *batches):
    with TrajectoryRecorder(model) as recorder, torch.no_grad():
        for batch in batches:
            model(batch)
    return recorder


@pytest.mark.core
@pytest.mark.filterwarnings('ignore:torch.utils.checkpoint')
def test_checkpointing_changes_no_number():
    found = []
    for with_cp in (False, True):
        model = build(with_cp=with_cp)
        model.train()
        with TrajectoryRecorder(model) as recorder:
            model(IMAGES)[-1].sum().backward()
        found.append([recorder.nsi, recorder.step])
    assert len(recorder.nsi) == 3
    assert all(map(torch.equal, *found))


@pytest.mark.core
def test_a_stage_checkpointed_from_outside_counts_once():
    net = build('ResNet', 50)  # the second run ends in the last block
    net.train()
    inner = net.layer2.forward
    net.layer2.forward = lambda x: checkpoint(inner, x, use_reentrant=False)
    with TrajectoryRecorder(net) as recorder:
        net(IMAGES[:2].requires_grad_())[-1].sum().backward()
    assert recorder.nsi.shape == (2, 12)


def test_only_contexts_record_and_append_their_samples():
    model = build()
    batches = IMAGES[:1], IMAGES[1:]
    recorder = TrajectoryRecorder(model)
    with torch.no_grad():
        for batch in batches:
            with recorder:
                model(batch)
            model(IMAGES[:1])
    apart = [record(model, batch) for batch in batches]
    for name in ('nsi', 'step'):
        rows = torch.cat([getattr(other, name) for other in apart])
        assert torch.equal(getattr(recorder, name), rows)
    recorder.clear()
    with recorder:
        model(IMAGES[:1])
    assert len(recorder.nsi) == 1


def test_a_copy_of_a_watched_model_records_nothing():
    model = build('ResNet')
    with TrajectoryRecorder(model) as recorder:
        twin = copy.deepcopy(model)
        torch.save(model, io.BytesIO())
    twin(IMAGES[:1])
    assert len(recorder.nsi) == 0
    hooks = [hook.__self__ for module in twin.modules()
             for hook in module._forward_hooks.values()]
    assert hooks and not any(hook.on for hook in hooks)
    assert len(record(twin, IMAGES[:2]).nsi) == 2


def test_hooks_are_gone_after_an_error_and_its_forward_is_not_mixed_in():
    model = build()
    layer = model.layer3[1].conv2
    layer.forward = lambda x: 1 / 0
    with pytest.raises(ZeroDivisionError):
        with TrajectoryRecorder(model) as recorder:
            assert hook_count(model)
            model(IMAGES[:1])
    assert not hook_count(model)
    del layer.forward
    with recorder:
        model(IMAGES[:1])
    with pytest.raises(ValueError, match='different numbers of samples'):
        _ = recorder.nsi


@pytest.mark.parametrize('training', [False, True])
def test_an_update_is_the_same_in_a_fused_block(training):
    found = []
    for fused in (False, True):
        model = build(fused=fused)
        model.train(training)
        with TrajectoryRecorder(model, definition='update') as recorder, (
                torch.set_grad_enabled(training)):
            model(IMAGES)
        found.append(recorder.nsi)
    torch.testing.assert_close(*found, rtol=1e-4, atol=0)
    assert not torch.allclose(found[0], record(model, IMAGES).nsi)


@pytest.mark.core
@pytest.mark.parametrize('change', [
    lambda model: nn.Sequential(torch.compile(model)),
    lambda model: model.compile() or model,
    lambda model: setattr(
        model, 'forward', torch.compile(model.forward)) or model],
    ids=['part', 'in place', 'forward'])
def test_compiled_models_are_refused(change):
    with pytest.raises(ValueError, match='got a compiled'):
        TrajectoryRecorder(change(build('ResNet')))


@pytest.mark.long
@pytest.mark.core
def test_hooks_that_come_before_compilation_record():
    model, batch = build(
        depth=34, num_stages=1, strides=(1, ), dilations=(1, ),
        out_indices=(0, )), IMAGES
    exact = record(model, batch)
    torch._dynamo.reset()
    with TrajectoryRecorder(model) as recorder, torch.no_grad():
        compiled = torch.compile(model, backend='eager')
        compiled(batch)
    torch.testing.assert_close(recorder.nsi, exact.nsi, rtol=1e-4, atol=0)
    torch.testing.assert_close(recorder.step, exact.step, rtol=1e-4, atol=0)


def test_what_cannot_be_recorded_is_refused():
    model = build('ResNet')
    with pytest.raises(ValueError, match='got first blocks only'):
        TrajectoryRecorder(nn.Sequential(model.layer1[0]))
    block = model.layer2[1]
    block.forward = lambda x: x + block.conv1(x)
    with pytest.raises(ValueError, match=r'layer2.1: expected its parts to'):
        record(model, IMAGES[:1])
