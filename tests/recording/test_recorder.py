import copy
import math
from collections import OrderedDict
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from stepnet_mm.recording import ResidualBlock, TrajectoryRecorder
from stepnet_mm.stiffness import DEFINITIONS

pytestmark = pytest.mark.core

LIBRARIES = ['mmdet', 'mmpretrain']
BACKBONES = ['ResNet', 'StepResNet']
START = 1 / (1 + math.e)


@pytest.fixture(autouse=True, scope='module')
def one_thread():
    """Threads that wait for a busy core make small nets 200x slower."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def build(library, name='ResNet', depth=18, **kwargs):
    registry = pytest.importorskip(f'{library}.registry').MODELS
    torch.manual_seed(0)
    model = registry.build(
        dict(
            type=f'{library}.{name}',
            depth=depth,
            base_channels=8,
            stem_channels=8,
            **kwargs))
    for parameter_name, parameter in model.named_parameters():
        if parameter_name.endswith(('step.ie.weight', 'step.ie.bias')):
            nn.init.normal_(parameter)
    model.eval()  # mmdet's does not return the model
    return model


def images(number=3, seed=1, channels=3):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(number, channels, 64, 64, generator=generator)


def gate_of(block):
    """The step-size module of a block: its step, or a plugin at the end."""
    names = getattr(block, 'after_conv3_plugin_names', [])
    plugins = [getattr(block, name) for name in names]
    return getattr(block, 'step', None) or (plugins or [None])[-1]


def residual_by_hand(block, x):
    last = 3 if hasattr(block, 'conv3') else 2
    for i in range(1, last + 1):
        x = getattr(block, f'norm{i}')(getattr(block, f'conv{i}')(x))
        x = x.relu() if i < last else x
    return x


@torch.no_grad()
def by_hand(model, x):
    """Runs a ResNet part by part: NSI and steps (N, L), and the output."""
    x = model.maxpool(model.relu(model.norm1(model.conv1(x))))
    nsi, steps = [], []
    for name in model.res_layers:
        for position, block in enumerate(getattr(model, name)):
            identity = block.downsample(x) if block.downsample else x
            f, gate = residual_by_hand(block, x), gate_of(block)
            step = gate.step_size(identity, f) if gate else torch.ones(1)
            x = (identity + step * f).relu()
            if position:
                nsi.append(
                    f.flatten(1).norm(dim=1) / identity.flatten(1).norm(dim=1))
                steps.append(
                    step.flatten(1).mean(1) if gate else nsi[-1] * math.nan)
    return torch.stack(nsi, 1), torch.stack(steps, 1), x


def assert_equals_hand_run(model):
    x = images()
    with TrajectoryRecorder(model) as recorder, torch.no_grad():
        output = model(x)[-1]
    nsi, steps, expected = by_hand(model, x)
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(recorder.nsi, nsi, rtol=1e-5, atol=0)
    torch.testing.assert_close(
        recorder.step, steps, rtol=1e-5, atol=0, equal_nan=True)


def hook_counts(model):
    return [
        len(module._forward_hooks) + len(module._forward_pre_hooks)
        for module in model.modules()
    ]


def gradients(model):
    return {
        name: parameter.grad
        for name, parameter in model.named_parameters()
    }


def train_once(model, x):
    outputs = model(x)
    sum(output.square().mean() for output in outputs).backward()
    return outputs


def record(model, *batches):
    with TrajectoryRecorder(model) as recorder, torch.no_grad():
        for batch in batches:
            model(batch)
    return recorder


@pytest.mark.parametrize('library', LIBRARIES)
@pytest.mark.parametrize('name', BACKBONES)
@pytest.mark.parametrize('depth', [18, 50])
def test_equals_a_run_by_hand(library, name, depth):
    assert_equals_hand_run(build(library, name, depth))


@pytest.mark.parametrize('library', LIBRARIES)
def test_steps_in_all_blocks_equal_a_run_by_hand(library):
    assert_equals_hand_run(build(library, 'StepResNet', step_blocks='all'))


def test_a_projected_identity_is_the_state_where_the_last_block_projects():
    layers = pytest.importorskip('mmdet.models.layers')
    blocks = pytest.importorskip('mmdet.models.backbones.resnet')
    stage = layers.ResLayer(
        blocks.BasicBlock, 4, 8, 2, downsample_first=False).eval()
    features = images(channels=4)
    recorder = record(stage, features)
    with torch.no_grad():
        x = stage[0](features)
        identity, f = stage[1].downsample(x), residual_by_hand(stage[1], x)
    expected = f.flatten(1).norm(dim=1) / identity.flatten(1).norm(dim=1)
    torch.testing.assert_close(recorder.nsi, expected[:, None])


def test_a_step_plugin_after_conv3_is_a_step():
    plugin = dict(
        cfg=dict(type='ToyStep'),
        position='after_conv3',
        stages=(False, True, False, False))
    model = build('mmdet', depth=50, plugins=[plugin])
    assert_equals_hand_run(model)
    recorder = record(model, images())
    has_step = ~recorder.step.isnan()
    assert torch.equal(has_step, (recorder.stage == 2).expand_as(has_step))


@pytest.mark.parametrize('library', LIBRARIES)
def test_first_blocks_are_left_out(library):
    recorder = TrajectoryRecorder(build(library, depth=50))
    assert recorder.blocks == [
        f'layer{stage}.{position}'
        for stage, length in ((1, 3), (2, 4), (3, 6), (4, 3))
        for position in range(1, length)
    ]
    assert recorder.stage.tolist() == [1] * 2 + [2] * 3 + [3] * 5 + [4] * 2


def test_names_inside_a_larger_model():
    model = nn.Sequential(OrderedDict(backbone=build('mmdet')))
    recorder = record(model, images(1))
    assert recorder.blocks[0] == 'backbone.layer1.1'
    assert recorder.nsi.shape == (1, 4)


def test_definition_is_that_of_the_residual():
    assert TrajectoryRecorder(build('mmdet')).definition == 'residual'


@pytest.mark.parametrize('library', LIBRARIES)
@pytest.mark.parametrize('training', [False, True])
def test_fresh_adaptors_have_the_published_step(library, training):
    registry = pytest.importorskip(f'{library}.registry').MODELS
    model = registry.build(dict(type=f'{library}.StepResNet', depth=18))
    model.train(training)
    step = record(model, images()).step
    torch.testing.assert_close(step, torch.full((3, 4), START))


@pytest.mark.parametrize('library', LIBRARIES)
def test_no_step_is_nan(library):
    recorder = record(build(library), images())
    assert recorder.step.shape == (3, 4)
    assert recorder.step.isnan().all()


@pytest.mark.parametrize('library', LIBRARIES)
@pytest.mark.parametrize('name', BACKBONES)
@pytest.mark.parametrize('depth', [18, 50])
@pytest.mark.filterwarnings('ignore:torch.utils.checkpoint')
def test_checkpointing_changes_no_number(library, name, depth):
    plain = build(library, name, depth)
    saving = build(library, name, depth, with_cp=True)
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


def test_several_contexts_append_their_samples():
    model = build('mmdet')
    recorder = TrajectoryRecorder(model)
    for number in (1, 2):
        with recorder, torch.no_grad():
            model(images(number))
    assert len(recorder.nsi) == 3


def test_nothing_is_recorded_outside_the_context():
    model = build('mmdet')
    recorder = record(model, images(2))
    before = recorder.nsi
    model(images(1))
    assert torch.equal(recorder.nsi, before)


def test_before_any_forward():
    recorder = TrajectoryRecorder(build('mmdet'))
    assert recorder.nsi.shape == recorder.step.shape == (0, 4)


def test_clear_forgets_the_samples():
    model = build('mmdet')
    recorder = record(model, images(2))
    recorder.clear()
    assert len(recorder.nsi) == 0
    with recorder, torch.no_grad():
        model(images(1))
    assert len(recorder.nsi) == 1


@pytest.mark.parametrize('definition', DEFINITIONS)
def test_a_copy_of_a_watched_model_records_nothing(definition):
    import io
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


@pytest.mark.parametrize('library', LIBRARIES)
@pytest.mark.parametrize('name', BACKBONES)
def test_hooks_are_gone_after_the_context(library, name):
    model = build(library, name)
    before = hook_counts(model)
    with TrajectoryRecorder(model):
        assert sum(hook_counts(model)) > sum(before)
        model(images(1))
    assert hook_counts(model) == before


def fail(*args):
    raise RuntimeError('broken on purpose')


@pytest.mark.parametrize('library', LIBRARIES)
@pytest.mark.parametrize('name', BACKBONES)
def test_hooks_are_gone_after_an_error(library, name, monkeypatch):
    model = build(library, name)
    before = hook_counts(model)
    monkeypatch.setattr(model.layer3[1].conv2, 'forward', fail)
    with pytest.raises(RuntimeError, match='broken on purpose'):
        with TrajectoryRecorder(model):
            model(images(1))
    assert hook_counts(model) == before


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


@pytest.mark.parametrize('library', LIBRARIES)
@pytest.mark.parametrize('name', BACKBONES)
@pytest.mark.parametrize('with_cp', [False, True])
@pytest.mark.parametrize('definition', DEFINITIONS)
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


def test_records_hold_no_graph():
    model = build('mmdet', 'StepResNet')
    with TrajectoryRecorder(model) as recorder:
        model(images(1))
    assert not recorder.nsi.requires_grad
    assert not recorder.step.requires_grad


def test_autocast_is_measured_in_float32():
    model = build('mmdet', 'StepResNet')
    with torch.autocast('cpu', torch.bfloat16):
        recorder = record(model, images())
    exact = record(model, images())
    assert recorder.nsi.dtype == recorder.step.dtype == torch.float32
    torch.testing.assert_close(recorder.nsi, exact.nsi, rtol=.1, atol=.01)


def test_float64_is_kept():
    model = build('mmdet').double()
    assert record(model, images(1).double()).nsi.dtype == torch.float64


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


@pytest.mark.parametrize('make', [
    lambda: torch.compile(build('mmdet')),
    lambda: nn.Sequential(torch.compile(build('mmdet'))),
    compiled_in_place,
    compiled_forward,
], ids=['whole', 'part', 'in place', 'forward'])
def test_compiled_models_are_refused(make):
    with pytest.raises(ValueError, match='got a compiled'):
        TrajectoryRecorder(make())


def test_a_model_without_residual_blocks():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
    with pytest.raises(ValueError, match='no residual block'):
        TrajectoryRecorder(model)


def test_a_model_with_first_blocks_only():
    model = nn.Sequential(build('mmdet').layer1[0])
    with pytest.raises(ValueError, match='got first blocks only'):
        TrajectoryRecorder(model)


def test_a_stage_checkpointed_from_outside_counts_once():
    import torch.utils.checkpoint as cp
    models = pytest.importorskip('mmdet.registry').MODELS
    net = models.build(
        dict(type='ResNet', depth=50, base_channels=8, stem_channels=8))
    inner = net.layer2.forward
    net.layer2.forward = lambda x: cp.checkpoint(
        inner, x, use_reentrant=False)
    x = torch.randn(2, 3, 32, 32, requires_grad=True)
    with TrajectoryRecorder(net) as recorder:
        net(x)[-1].sum().backward()
    assert recorder.nsi.shape == (2, 12)


def test_entering_twice_is_refused():
    models = pytest.importorskip('mmdet.registry').MODELS
    recorder = TrajectoryRecorder(models.build(dict(type='ResNet', depth=18)))
    with recorder:
        with pytest.raises(RuntimeError, match='got one in use'):
            recorder.__enter__()


def test_a_block_that_takes_no_tensor_is_named():
    models = pytest.importorskip('mmdet.registry').MODELS
    net = models.build(
        dict(type='TridentResNet', depth=50, num_branch=3, test_branch_idx=1,
             trident_dilations=(1, 2, 3), num_stages=3, strides=(1, 2, 2),
             dilations=(1, 1, 1), out_indices=(2, )))
    with TrajectoryRecorder(net):
        with pytest.raises(ValueError, match='layer3.* takes a tensor'):
            net(torch.randn(1, 3, 32, 32))


class Pair(torch.nn.Module):
    """A block whose output is no tensor, but an object of its own."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(4, 4, 1)

    def forward(self, x):
        return SimpleNamespace(x=x + self.conv(getattr(x, 'x', x)))


def test_a_block_that_gives_no_tensor_is_named():
    net = torch.nn.Sequential(torch.nn.Identity(), Pair())
    block = ResidualBlock('1', stage=1, position=1, module=net[1])
    with TrajectoryRecorder(net, [block], 'output'):
        with pytest.raises(ValueError, match='1: .* gives a tensor, got none'):
            net(torch.randn(1, 4, 8, 8))


@pytest.mark.parametrize(
    'backend', ['eager', pytest.param('aot_eager', marks=pytest.mark.long)])
@pytest.mark.parametrize('name', BACKBONES)
def test_hooks_that_come_before_compilation_record(backend, name):
    model = build('mmpretrain', name, num_stages=2, strides=(1, 2),
                  dilations=(1, 1), out_indices=(1, ))
    exact = record(model, images())
    torch._dynamo.reset()
    with TrajectoryRecorder(model) as recorder, torch.no_grad():
        compiled = torch.compile(model, backend=backend)
        compiled(images())
        compiled(images())
    torch.testing.assert_close(
        recorder.nsi, exact.nsi.repeat(2, 1), rtol=1e-4, atol=0)
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
@pytest.mark.parametrize('name', BACKBONES)
def test_a_forward_never_waits_for_the_device(name, definition):
    # Not on a CPU, where a look at the norms is free.
    model, x = build('mmpretrain', name).to('meta'), images().to('meta')
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


def test_memory_does_not_grow_with_the_number_of_blocks():
    """Kept after a forward: one number a sample, block and table."""
    model = build('mmdet', depth=50)
    with TrajectoryRecorder(model) as recorder:
        model(images())
        kept = [t for trace in recorder._traces
                for t in trace.nsi + trace.step]
    assert {t.shape for t in kept} == {(3, )}
    assert all(trace.current is None for trace in recorder._traces)
