import copy
import io
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from stepnet_mm.recording import ResidualBlock, TrajectoryRecorder
from stepnet_mm.stiffness import DEFINITIONS


def build(library, name='ResNet', depth=18, **kwargs):
    registry = pytest.importorskip(f'{library}.registry').MODELS
    torch.manual_seed(0)
    model = registry.build(dict(
        type=f'{library}.{name}', depth=depth, base_channels=8,
        stem_channels=8, **kwargs))
    for parameter_name, parameter in model.named_parameters():
        if parameter_name.endswith(('step.ie.weight', 'step.ie.bias')):
            nn.init.normal_(parameter)
    model.eval()  # mmdet's does not return the model
    return model


def images(number=3, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(number, 3, 32, 32, generator=generator)


def hook_counts(model):
    return [len(m._forward_hooks) + len(m._forward_pre_hooks)
            for m in model.modules()]


def train_once(model, x):
    outputs = model(x)
    sum(output.square().mean() for output in outputs).backward()
    return outputs


def record(model, *batches):
    with TrajectoryRecorder(model) as recorder, torch.no_grad():
        for batch in batches:
            model(batch)
    return recorder


@pytest.mark.core
@pytest.mark.parametrize('library', ['mmdet', 'mmpretrain'])
def test_first_blocks_are_left_out(library):
    recorder = TrajectoryRecorder(build(library, 'StepResNet', 50))
    places = [(stage, position)
              for stage, length in ((1, 3), (2, 4), (3, 6), (4, 3))
              for position in range(length)]
    assert [(b.stage, b.position) for b in recorder.found] == places
    assert recorder.blocks == [f'layer{s}.{p}' for s, p in places if p]
    assert recorder.stage.tolist() == [s for s, p in places if p]


@pytest.mark.core
@pytest.mark.parametrize('library, name', [
    ('mmdet', 'ResNet'), ('mmpretrain', 'StepResNet')])
@pytest.mark.filterwarnings('ignore:torch.utils.checkpoint')
def test_checkpointing_changes_no_number(library, name):
    plain = build(library, name)
    saving = build(library, name, with_cp=True)
    saving.load_state_dict(plain.state_dict())
    runs = []
    saving.layer2[1].conv1.register_forward_hook(
        lambda *args: runs.append(len(args)))
    recorders = []
    for model in (plain, saving):
        model.train()
        with TrajectoryRecorder(model) as recorder:
            train_once(model, images())
        recorders.append(recorder)
    assert len(runs) == 2
    assert recorders[1].nsi.shape == (3, len(recorders[1].blocks))
    for found in ('nsi', 'step'):
        torch.testing.assert_close(
            *[getattr(r, found) for r in recorders], rtol=0, atol=0,
            equal_nan=True)


def test_only_contexts_record_and_append_their_samples():
    model = build('mmdet', 'StepResNet')
    batches = images(1), images(2, seed=2)
    recorder = TrajectoryRecorder(model)
    assert recorder.nsi.shape == recorder.step.shape == (0, 4)
    with torch.no_grad():
        for batch in batches:
            with recorder:
                model(batch)
            model(images(1))
    apart = [record(model, batch) for batch in batches]
    for name in ('nsi', 'step'):
        rows = torch.cat([getattr(other, name) for other in apart])
        assert torch.equal(getattr(recorder, name), rows)
        assert not rows.requires_grad
    recorder.clear()
    assert len(recorder.nsi) == 0
    with recorder:
        model(images(1))
    assert len(recorder.nsi) == 1


def test_a_copy_of_a_watched_model_records_nothing():
    model = build('mmdet')
    with TrajectoryRecorder(model) as recorder:
        twin = copy.deepcopy(model)
        torch.save(model, io.BytesIO())
    twin(images(1))
    assert len(recorder.nsi) == 0
    hooks = [hook.__self__ for module in twin.modules()
             for hook in module._forward_hooks.values()]
    assert hooks and not any(hook.on for hook in hooks)
    assert len(record(twin, images(2)).nsi) == 2


def test_hooks_are_gone_after_an_error_and_its_forward_is_not_mixed_in(
        monkeypatch):

    def fail(*args):
        raise RuntimeError('broken on purpose')

    model = build('mmdet', 'StepResNet')
    before = hook_counts(model)
    with monkeypatch.context() as patch:
        patch.setattr(model.layer3[1].conv2, 'forward', fail)
        with pytest.raises(RuntimeError, match='broken on purpose'):
            with TrajectoryRecorder(model) as recorder:
                assert sum(hook_counts(model)) > sum(before)
                model(images(1))
    assert hook_counts(model) == before
    with recorder:
        model(images(1))
    with pytest.raises(ValueError, match='different numbers of samples'):
        _ = recorder.nsi


@pytest.mark.parametrize('definition', DEFINITIONS)
@pytest.mark.parametrize('library, name, with_cp', [
    pytest.param('mmdet', 'StepResNet', False, marks=pytest.mark.core),
    ('mmpretrain', 'ResNet', True)])
@pytest.mark.filterwarnings('ignore:torch.utils.checkpoint')
def test_outputs_and_gradients_stay_bit_for_bit(library, name, with_cp,
                                                definition):
    watched = build(library, name, with_cp=with_cp)
    watched.train()
    alone = copy.deepcopy(watched)
    with TrajectoryRecorder(watched, definition=definition):
        outputs = train_once(watched, images())
    assert all(map(torch.equal, outputs, train_once(alone, images())))
    assert all(map(torch.equal, [p.grad for p in watched.parameters()],
                   [p.grad for p in alone.parameters()]))
    assert all(map(torch.equal, watched.state_dict().values(),
                   alone.state_dict().values()))


@pytest.mark.parametrize('training', [False, True])
def test_an_update_is_the_same_in_a_fused_block(training):
    found = []
    for fused in (False, True):
        model = build('mmdet', 'StepResNet', fused=fused)
        model.train(training)
        with TrajectoryRecorder(model, definition='update') as recorder, (
                torch.set_grad_enabled(training)):
            model(images())
        found.append(recorder.nsi)
    torch.testing.assert_close(*found, rtol=1e-4, atol=0)
    assert not torch.allclose(found[0], record(model, images()).nsi)


@pytest.mark.core
def test_numbers_are_in_single_precision_or_wider():
    model = build('mmdet', 'StepResNet')
    with torch.autocast('cpu', torch.bfloat16):
        recorder = record(model, images())
    exact = record(model.double(), images().double())
    assert recorder.nsi.dtype == recorder.step.dtype == torch.float32
    assert exact.nsi.dtype == torch.float64
    torch.testing.assert_close(
        recorder.nsi.double(), exact.nsi, rtol=.1, atol=.01)


def compiled_in_place():
    model = build('mmdet')
    model.compile()
    return model


def compiled_forward():
    model = build('mmdet')
    model.forward = torch.compile(model.forward)
    return model


@pytest.mark.core
@pytest.mark.parametrize('make', [
    lambda: nn.Sequential(torch.compile(build('mmdet'))),
    compiled_in_place,
    compiled_forward,
], ids=['part', 'in place', 'forward'])
def test_compiled_models_are_refused(make):
    with pytest.raises(ValueError, match='got a compiled'):
        TrajectoryRecorder(make())


@pytest.mark.core
def test_a_stage_checkpointed_from_outside_counts_once():
    net = build('mmdet', depth=50)  # the second run ends in the last block
    net.train()
    inner = net.layer2.forward
    net.layer2.forward = lambda x: checkpoint(inner, x, use_reentrant=False)
    with TrajectoryRecorder(net) as recorder:
        net(images(2).requires_grad_())[-1].sum().backward()
    assert recorder.nsi.shape == (2, 12)


class Pair(nn.Module):
    """A block whose output is an object that holds a tensor."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 1)

    def forward(self, x):
        return SimpleNamespace(x=x + self.conv(getattr(x, 'x', x)))


@pytest.mark.parametrize('place, match', [
    (1, '1: .* gives a tensor'), (2, '2: .* takes a tensor')])
def test_a_block_without_a_tensor_is_named(place, match):
    net = nn.Sequential(nn.Identity(), Pair(), Pair())
    block = ResidualBlock(str(place), 1, 1, net[place])
    with TrajectoryRecorder(net, [block], 'output'):
        with pytest.raises(ValueError, match=match):
            net(torch.randn(1, 4, 8, 8))


def test_what_cannot_be_recorded_is_refused(monkeypatch):
    model = build('mmdet')
    with pytest.raises(ValueError, match='got first blocks only'):
        TrajectoryRecorder(nn.Sequential(model.layer1[0]))
    with TrajectoryRecorder(model) as recorder:
        with pytest.raises(RuntimeError, match='got one in use'):
            recorder.__enter__()
    block = model.layer2[1]
    monkeypatch.setattr(block, 'forward', lambda x: x + block.conv1(x))
    with pytest.raises(ValueError, match=r'layer2.1: expected its parts to'):
        record(model, images(1))


@pytest.mark.long
@pytest.mark.core
def test_hooks_that_come_before_compilation_record():
    model = build('mmpretrain', 'StepResNet', num_stages=1, strides=(1, ),
                  dilations=(1, ), out_indices=(0, ))
    exact = record(model, images())
    torch._dynamo.reset()
    with TrajectoryRecorder(model) as recorder, torch.no_grad():
        compiled = torch.compile(model, backend='aot_eager')
        compiled(images())
        compiled(images())
    torch.testing.assert_close(
        recorder.nsi, exact.nsi.repeat(2, 1), rtol=1e-4, atol=0)
    with torch.no_grad():
        compiled(images())
    assert len(recorder.nsi) == 6
    with pytest.raises(ValueError, match='got a compiled'):
        TrajectoryRecorder(compiled)


class Wrapper(nn.Module):
    """A model wrapper for mmengine."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)


@pytest.mark.core
def test_averaged_and_wrapped_models_are_looked_into(monkeypatch):
    from mmengine.model import ExponentialMovingAverage
    from mmengine.registry import MODEL_WRAPPERS
    monkeypatch.setitem(MODEL_WRAPPERS._module_dict, 'Wrapper', Wrapper)
    model = build('mmdet', 'StepResNet')
    exact = record(model, images())
    for outer in (ExponentialMovingAverage(model), Wrapper(model)):
        recorder = record(outer, images())
        assert recorder.blocks == exact.blocks
        assert torch.equal(recorder.nsi, exact.nsi)
