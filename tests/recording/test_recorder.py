import copy
import io
import math
from collections import OrderedDict
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from stepnet_mm.recording import ResidualBlock, TrajectoryRecorder
from stepnet_mm.stiffness import DEFINITIONS

BACKBONES = ['ResNet', 'StepResNet']


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


def gradients(model):
    return {name: p.grad for name, p in model.named_parameters()}


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


def test_names_inside_a_larger_model():
    model = nn.Sequential(OrderedDict(backbone=build('mmdet')))
    recorder = record(model, images(1))
    assert recorder.blocks[0] == 'backbone.layer1.1'
    assert recorder.nsi.shape == (1, 4)


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
    assert torch.equal(recorders[1].nsi, recorders[0].nsi)
    assert recorders[1].nsi.shape == (3, len(recorders[1].blocks))
    torch.testing.assert_close(
        recorders[1].step, recorders[0].step, rtol=0, atol=0, equal_nan=True)


def test_several_forwards_append_their_samples():
    model = build('mmdet', 'StepResNet')
    first, second = images(2, seed=1), images(3, seed=2)
    both = record(model, first, second)
    apart = record(model, first), record(model, second)
    for name in ('nsi', 'step'):
        rows = torch.cat([getattr(recorder, name) for recorder in apart])
        assert torch.equal(getattr(both, name), rows)


def test_only_contexts_record_and_append_their_samples():
    model = build('mmdet')
    recorder = TrajectoryRecorder(model)
    assert recorder.nsi.shape == recorder.step.shape == (0, 4)
    with torch.no_grad():
        for number in (1, 2):
            with recorder:
                model(images(number))
            model(images(1))
        assert len(recorder.nsi) == 3
        recorder.clear()
        assert len(recorder.nsi) == 0
        with recorder:
            model(images(1))
    assert len(recorder.nsi) == 1


@pytest.mark.parametrize('definition', DEFINITIONS)
def test_a_copy_of_a_watched_model_records_nothing(definition):
    model = build('mmdet')
    with TrajectoryRecorder(model, definition=definition) as recorder:
        twin = copy.deepcopy(model)
        torch.save(model, io.BytesIO())
    twin(images(1))
    assert len(recorder.nsi) == 0
    hooks = [hook.__self__ for module in twin.modules()
             for hook in module._forward_hooks.values()]
    assert hooks and not any(hook.on for hook in hooks)
    with TrajectoryRecorder(twin) as other, torch.no_grad():
        twin(images(2))
    assert len(other.nsi) == 2


@pytest.mark.parametrize('name', BACKBONES)
def test_hooks_are_gone_after_the_context_and_after_an_error(
        name, monkeypatch):
    model = build('mmdet', name)
    before = hook_counts(model)
    with TrajectoryRecorder(model):
        assert sum(hook_counts(model)) > sum(before)
        model(images(1))
    assert hook_counts(model) == before
    monkeypatch.setattr(model.layer3[1].conv2, 'forward', fail)
    with pytest.raises(RuntimeError, match='broken on purpose'):
        with TrajectoryRecorder(model):
            model(images(1))
    assert hook_counts(model) == before


def fail(*args):
    raise RuntimeError('broken on purpose')


def test_a_forward_that_broke_off_is_not_mixed_in(monkeypatch):
    model = build('mmdet')
    with TrajectoryRecorder(model) as recorder:
        with monkeypatch.context() as patch:
            patch.setattr(model.layer3[1].conv2, 'forward', fail)
            with pytest.raises(RuntimeError, match='broken on purpose'):
                model(images(1))
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
    for output, expected in zip(outputs, train_once(alone, images())):
        assert torch.equal(output, expected)
    expected = gradients(alone)
    for key, gradient in gradients(watched).items():
        assert torch.equal(gradient, expected[key]), key
    state = alone.state_dict()
    for key, value in watched.state_dict().items():
        assert torch.equal(value, state[key]), key


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


def test_a_number_a_sample_and_block_is_kept_and_no_graph():
    model = build('mmdet', 'StepResNet').double()
    with TrajectoryRecorder(model) as recorder:
        model(images().double())
        kept = [t for trace in recorder._traces
                for t in trace.nsi + trace.step]
    assert {t.shape for t in kept} == {(3, )}
    assert not any(t.requires_grad for t in kept)
    assert all(trace.current is None for trace in recorder._traces)
    assert recorder.nsi.dtype == torch.float64


@pytest.mark.core
def test_autocast_is_measured_in_float32():
    model = build('mmdet', 'StepResNet')
    with torch.autocast('cpu', torch.bfloat16):
        recorder = record(model, images())
    exact = record(model, images())
    assert recorder.nsi.dtype == recorder.step.dtype == torch.float32
    torch.testing.assert_close(recorder.nsi, exact.nsi, rtol=.1, atol=.01)


def test_a_broken_image_gives_inf_in_its_row_only():
    batch = images()
    batch[1, 0, 0, 0] = math.nan
    nsi = record(build('mmdet'), batch).nsi
    assert nsi[1].isinf().all()
    assert nsi[[0, 2]].isfinite().all()


def test_an_all_zero_state_never_gives_nan():
    model = build('mmdet')
    for norm in (model.norm1, model.layer1[0].norm2, model.layer1[1].norm2):
        nn.init.zeros_(norm.weight)
    nsi = record(model, images(1)).nsi
    assert nsi[0, 0] == 0
    assert not nsi.isnan().any()


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
    lambda: torch.compile(build('mmdet')),
    lambda: nn.Sequential(torch.compile(build('mmdet'))),
    compiled_in_place,
    compiled_forward,
], ids=['whole', 'part', 'in place', 'forward'])
def test_compiled_models_are_refused(make):
    with pytest.raises(ValueError, match='got a compiled'):
        TrajectoryRecorder(make())


def test_a_model_with_first_blocks_only():
    model = nn.Sequential(build('mmdet').layer1[0])
    with pytest.raises(ValueError, match='got first blocks only'):
        TrajectoryRecorder(model)


@pytest.mark.core
def test_a_stage_checkpointed_from_outside_counts_once():
    net = build('mmdet', depth=50)  # the second run ends in the last block
    net.train()
    inner = net.layer2.forward
    net.layer2.forward = lambda x: checkpoint(inner, x, use_reentrant=False)
    with TrajectoryRecorder(net) as recorder:
        net(images(2).requires_grad_())[-1].sum().backward()
    assert recorder.nsi.shape == (2, 12)


def test_entering_twice_is_refused():
    with TrajectoryRecorder(build('mmdet')) as recorder:
        with pytest.raises(RuntimeError, match='got one in use'):
            recorder.__enter__()


class Pair(nn.Module):
    """A block whose output is no tensor, but an object of its own."""

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


@pytest.mark.long
@pytest.mark.core
@pytest.mark.parametrize(
    'backend', ['eager', pytest.param('aot_eager', marks=pytest.mark.long)])
def test_hooks_that_come_before_compilation_record(backend):
    model = build('mmpretrain', 'StepResNet', num_stages=1, strides=(1, ),
                  dilations=(1, ), out_indices=(0, ))
    exact = record(model, images())
    torch._dynamo.reset()
    with TrajectoryRecorder(model) as recorder, torch.no_grad():
        compiled = torch.compile(model, backend=backend)
        compiled(images())
        compiled(images())
    torch.testing.assert_close(
        recorder.nsi, exact.nsi.repeat(2, 1), rtol=1e-4, atol=0)
    with torch.no_grad():
        compiled(images())
    assert len(recorder.nsi) == 6
    with pytest.raises(ValueError, match='got a compiled'):
        TrajectoryRecorder(compiled)


def test_a_part_that_is_left_out_is_said(monkeypatch):
    model = build('mmpretrain', 'ResNet')
    block = model.layer2[1]
    monkeypatch.setattr(block, 'forward', lambda x: x + block.conv1(x))
    with pytest.raises(ValueError, match=r'layer2.1: expected its parts to'):
        record(model, images(1))


class NoTransfers(TorchDispatchMode):
    """Counts what makes the host wait for a device."""
    waits = ('_local_scalar_dense', 'nonzero', 'masked_select', 'item',
             'equal', '_to_copy', 'is_nonzero')

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = function.overloadpacket.__name__
        if name in self.waits and (name != '_to_copy' or 'device' in kwargs):
            self.found.append(name)
        return function(*args, **kwargs)


@pytest.mark.parametrize('definition', DEFINITIONS)
def test_a_forward_never_waits_for_the_device(definition):
    # Not on a CPU, where a look at the norms is free.
    model = build('mmpretrain', 'StepResNet').to('meta')
    x = images().to('meta')
    with TrajectoryRecorder(model, definition=definition) as recorder:
        with NoTransfers() as transfers, torch.no_grad():
            model(x)
    assert not transfers.found
    assert all(len(t.nsi[0]) == 3 for t in recorder._traces)
    with NoTransfers() as transfers:
        torch.ones(1).item()
    assert transfers.found


class Wrapper(nn.Module):
    """What mmengine knows as a model wrapper."""

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
