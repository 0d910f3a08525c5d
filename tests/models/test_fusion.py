import copy
import re
from contextlib import nullcontext

import pytest
import torch
from mmengine.utils import digit_version
from torch import nn

from stepnet_mm.models import fusion, step_block_class
from stepnet_mm.ops import tail_check
from stepnet_mm.recording import TrajectoryRecorder
from stepnet_mm.steps import SEAttention, StepSize, build_step
from stepnet_mm.steps.pooling import global_mean, global_std

library = pytest.importorskip('mmdet.models.backbones.resnet')
#: Backbones of two stages: 4 blocks, 3 of them with a step; 7 blocks, 5.
SMALL = dict(type='StepResNet', depth=18, base_channels=8, stem_channels=8,
             num_stages=2, strides=(1, 2), dilations=(1, 1),
             out_indices=(0, 1))
DEEPER = dict(SMALL, depth=50)
FUSED = ('StepAdaptor', 'SEAttention', 'ECAAttention', 'SRMAttention',
         'FCAAttention', 'SEMAttention', 'SumStepAdaptor',
         'UnnormalizedStepAdaptor', 'SoftmaxStepAdaptor', 'ConstantStep')
UNFUSED = ('CBAMAttention', 'SGEAttention', 'MaxPoolStepAdaptor',
           'TimmAttention')
EXTRA = dict(
    SEAttention=dict(reduction=4), FCAAttention=dict(reduction=4),
    SEMAttention=dict(reduction=4), CBAMAttention=dict(reduction=4),
    SGEAttention=dict(groups=4), TimmAttention=dict(name='ese'))


def block(step='StepAdaptor', kind=library.Bottleneck, dtype=torch.float64,
          **kwargs):
    """A step block of 16 channels, all parameters away from their starts."""
    torch.manual_seed(0)
    plain = library.BasicBlock, library.Bottleneck
    width = 16 // kind.expansion
    made = step_block_class(kind, plain)(16, width, **kwargs)
    made.step = build_step(dict(type=step, **EXTRA.get(step, {})), 16)
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=.3)
    for module in made.modules():
        if isinstance(module, nn.BatchNorm2d) and module.affine:
            nn.init.uniform_(module.weight, .5, 1.5)
            nn.init.normal_(module.running_mean, std=.3)
            nn.init.uniform_(module.running_var, .5, 1.5)
    return made.to(dtype)


def image(shape=(3, 16, 6, 5), dtype=torch.float64):
    torch.manual_seed(1)
    return torch.randn(shape, dtype=dtype).relu()


@pytest.fixture
def models():
    """Of one library; the bindings' own tests have both."""
    return pytest.importorskip('mmdet.registry').MODELS


@pytest.fixture
def calls(monkeypatch):
    """One entry for each end of a block that ran fused."""
    seen = []

    def watch(name):
        run = getattr(fusion, name)
        monkeypatch.setattr(
            fusion, name, lambda *args: seen.append(args[0]) or run(*args))

    watch('_run_over_maps')
    watch('_run_by_moments')
    return seen


def run(made, x, fused):
    """Output, all gradients and all buffers of a copy."""
    made = copy.deepcopy(made)
    made.fused = fused
    return run_as_it_is(made, x)


def run_as_it_is(made, x):
    x = x.clone().requires_grad_()
    out = made(x)
    torch.manual_seed(2)
    out.backward(torch.randn(out.shape).to(out.dtype))
    grads = {n: p.grad for n, p in made.named_parameters()
             if p.requires_grad}
    return dict(out=out, x=x.grad, **grads, **dict(made.named_buffers()))


def assert_as_unfused(made, x, calls, atol=1e-12, rtol=1e-11):
    fused = run(made, x, True)
    assert len(calls) == 1
    plain = run(made, x, False)
    assert len(calls) == 1
    assert fused.keys() == plain.keys()
    for key, value in plain.items():
        if value is not None:
            torch.testing.assert_close(
                fused[key], value, atol=atol, rtol=rtol,
                msg=lambda m, key=key: f'{key}: {m}')


def assert_not_fused(made, x, calls):
    fused, plain = run(made, x, True), run(made, x, False)
    assert not calls
    for key, value in plain.items():
        assert torch.equal(fused[key], value), key


#: Those that see a mean of x_t, a deviation and the map, by cosines.
KINDS = 'StepAdaptor', 'SRMAttention', 'FCAAttention'


@pytest.mark.parametrize('step, kind, training', [
    *((step, library.Bottleneck, True) for step in FUSED),
    *((step, library.BasicBlock, False) for step in KINDS)])
def test_as_the_modules_one_by_one(step, kind, training, calls):
    made = block(step, kind).train(training)
    assert_as_unfused(made, image(), calls)


@pytest.mark.core
def test_in_float32(calls):
    made = block('SRMAttention', dtype=torch.float32)
    assert_as_unfused(made, image(dtype=torch.float32), calls, 3e-4, 3e-4)


@pytest.mark.core
@pytest.mark.parametrize('step, training', [
    ('StepAdaptor', True), ('FCAAttention', False)])
@torch.no_grad()
def test_without_a_gradient(step, training, calls):
    made, x = block(step).train(training), image()
    results = []
    for fused in (True, False):
        twin = copy.deepcopy(made)
        twin.fused = fused
        results.append([twin(x), *twin.buffers()])
    assert len(calls) == 1
    for got, want in zip(*results):
        torch.testing.assert_close(got, want, atol=1e-12, rtol=1e-11)
    assert torch.equal(x, image())


@pytest.mark.parametrize('step, training, grad', [
    ('StepAdaptor', True, True), ('StepAdaptor', False, False),
    ('SRMAttention', False, True)])
def test_the_same_stiffness(models, step, training, grad, calls):
    net = models.build(dict(SMALL, step=step)).double()
    net.train(training)
    x, found = torch.randn(3, 3, 32, 32, dtype=torch.float64), []
    for fused in (True, False):
        twin = copy.deepcopy(net)
        twin._set_fused(fused)
        with TrajectoryRecorder(twin) as recorder, torch.set_grad_enabled(
                grad):
            out = twin(x)[-1]
        found.append((recorder.nsi, recorder.step, out))
    assert calls
    torch.testing.assert_close(*found, atol=1e-10, rtol=1e-10)


def test_a_block_attaches_the_mean_that_the_next_one_needs(models):
    def attaching(**kwargs):
        net = models.build(dict(SMALL, **kwargs))
        return [[block.next_needs_mean for block in stage]
                for stage in net._stages()]

    all_but_last, none = [[True, False]] * 2, [[False, False]] * 2
    assert attaching() == attaching(step_blocks='all') == all_but_last
    assert attaching(step=dict(type='SEAttention', reduction=4)) == none
    assert attaching(step='MaxPoolStepAdaptor') == none
    assert attaching(
        step=dict(type='StepAdaptor', inputs='difference')) == none
    assert attaching(step_blocks=[[1], []]) == [[True, False], [False] * 2]


def double_in_secret(module, x, y):
    y.data.mul_(2)  # the version does not tell


@pytest.mark.parametrize('grad', [True, False])
def test_a_hook_that_changes_the_state_between_blocks(models, grad, calls):
    net = models.build(DEEPER).double()
    net.eval()
    for step in net.steps():  # at the start Δt sees no state
        nn.init.normal_(step.ie.weight)
    net.layer1[0].register_forward_hook(lambda module, x, y: y.mul_(2))
    net.layer1[1].register_forward_hook(lambda module, x, y: y * 2)
    net.layer2[1].register_forward_hook(double_in_secret)
    net.layer2[3].register_forward_pre_hook(lambda module, x: x[0].mul_(2))
    x, results = image((2, 3, 32, 32)), []
    for fused in (True, False):
        net._set_fused(fused)
        with torch.set_grad_enabled(grad):
            results.append(net(x)[-1])
    assert len(calls) == 5
    torch.testing.assert_close(*results, atol=1e-12, rtol=1e-11)


@pytest.mark.parametrize('step', [
    *UNFUSED[:-1], pytest.param(UNFUSED[-1], marks=pytest.mark.long)])
def test_steps_that_see_the_map_are_not_fused(step, calls):
    assert_not_fused(block(step), image(), calls)


def test_a_subclass_may_see_the_map(calls):

    class Mine(SEAttention):

        def step_size(self, identity, residual):
            return super().step_size(identity, residual) * residual.sigmoid()

    made = block()
    made.step = Mine(16, reduction=4).double()
    assert_not_fused(made, image(), calls)


class Deviations(StepSize):
    """A step of one's own."""
    pools_only = needs_identity = True

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(1, 16, 1, 1))

    def step_size(self, identity, residual):
        deviations = global_std(residual, 1e-5) + global_std(identity)
        return (self.weight * global_mean(residual) + deviations).sigmoid()


class Scale(Deviations):
    """One step for all samples."""
    pools_only = True

    def step_size(self, identity, residual):
        return self.weight


@pytest.mark.parametrize('step', [Deviations, Scale])
def test_a_step_of_ones_own(step, calls):
    made = block()
    made.step = step().double()
    assert_as_unfused(made, image(), calls)


NORMS = dict(
    no_affine=nn.BatchNorm2d(16, affine=False),
    cumulative=nn.BatchNorm2d(16, momentum=None),
    momentum=nn.BatchNorm2d(16, momentum=.3, eps=.1),
    untracked=nn.BatchNorm2d(16, track_running_stats=False))


@pytest.mark.parametrize('norm, training', [
    *((norm, True) for norm in NORMS), ('untracked', False)])
def test_every_batch_norm(norm, training, calls):
    made = block()
    made.bn3 = copy.deepcopy(NORMS[norm]).double()
    made.train(training)
    made(image())  # a first update of the running statistics
    calls.clear()
    assert_as_unfused(made, image(), calls)


@pytest.mark.parametrize('frozen', [('bn3', 'conv3'), ('', )])
def test_frozen_parts(frozen, calls):
    """The last norm and convolution; all but the step."""
    made = block()
    for name in frozen:
        made.get_submodule(name).requires_grad_(False)
    made.bn3.train('' in frozen)
    made.step.requires_grad_(True)
    assert_as_unfused(made, image(), calls)


def changed(change):
    """What makes a block and changes it."""

    def make():
        made = block()
        change(made)
        return made.double()

    return make


def hooked(name, method='register_forward_hook'):
    return changed(lambda made: getattr(getattr(made, name), method)(
        lambda *args: None))


UNFIT = dict(
    sync_bn=changed(lambda made: setattr(made, 'bn3', nn.SyncBatchNorm(16))),
    iebn=lambda: block(norm_cfg=dict(type='IEBN')),
    plugin=lambda: block(plugins=[dict(cfg=dict(type='ECAAttention'),
                                       position='after_conv3')]),
    drop_path=changed(
        lambda made: setattr(made, 'drop_path', nn.Dropout(1e-9))),
    other_activation=changed(lambda made: setattr(made, 'relu', nn.ReLU6())),
    patched=changed(
        lambda made: setattr(made.bn3, 'forward', made.bn3.forward)),
    hook_on_the_norm=hooked('bn3'),
    pre_hook=hooked('bn3', 'register_forward_pre_hook'),
    backward_hook=hooked('bn3', 'register_full_backward_hook'),
    backward_pre_hook=hooked('bn3', 'register_full_backward_pre_hook'),
    hook_on_the_step=hooked('step'),
    hook_on_the_relu=hooked('relu'))


@pytest.mark.core
@pytest.mark.parametrize('name', UNFIT)
def test_what_does_not_fit_runs_the_modules(name, calls):
    made = UNFIT[name]()
    results = []
    for fused in (True, False):
        made.fused = fused
        torch.manual_seed(0)
        results.append(made.eval()(image()))
    assert torch.equal(*results)
    assert not calls


@pytest.mark.core
def test_global_hooks_see_every_module(calls):
    made, seen = block(), []
    handle = nn.modules.module.register_module_forward_hook(
        lambda module, *args: seen.append(module))
    try:
        made(image())
    finally:
        handle.remove()
    assert not calls and made.bn3 in seen and made.step in seen


def test_one_value_a_channel(calls):
    """The library's own error, not a division by 0."""
    with pytest.raises(ValueError, match='more than 1 value'):
        block()(image((1, 16, 1, 1)))


def test_one_position(calls):
    made = block(kind=library.BasicBlock).eval()
    assert_as_unfused(made, image((2, 16, 1, 1)), calls, 1e-9, 1e-7)


@pytest.mark.core
def test_channels_last_on_a_cpu(calls):
    x = image(dtype=torch.float32).to(memory_format=torch.channels_last)
    made = block(dtype=torch.float32).to(memory_format=torch.channels_last)
    results = [run(made, x, fused)['out'] for fused in (True, False)]
    torch.testing.assert_close(*results)
    assert not calls


@pytest.mark.core
def test_checkpointing_gives_the_same(calls):
    made = block()
    twin = copy.deepcopy(made)
    twin.with_cp = True
    one, two = run(made, image(), True), run(twin, image(), True)
    assert len(calls) == 3  # the second block ran again in its backward
    for key, value in one.items():
        if 'running' not in key and 'num_batches' not in key:
            assert torch.equal(value, two[key]), key


def test_autocast_to_bfloat16(calls):
    """No further from float32 than the modules one by one, by the norm."""
    made, x = block(dtype=torch.float32), image(dtype=torch.float32)
    exact = run(made, x, False)
    with torch.autocast('cpu', torch.bfloat16):
        fused, plain = run(made, x.bfloat16(), True), run(
            made, x.bfloat16(), False)
    assert len(calls) == 1
    for key in ('out', 'x', 'conv3.weight', 'bn3.weight'):
        errors = [(r[key].float() - exact[key]).norm() / exact[key].norm()
                  for r in (fused, plain)]
        assert errors[0] < max(1.5 * errors[1], 1e-2), (key, errors)


def test_a_model_in_bfloat16(calls):
    made = block(dtype=torch.bfloat16)
    out = run(made, image(dtype=torch.bfloat16), True)
    assert len(calls) == 1
    assert all(v.isfinite().all() and v.dtype == torch.bfloat16
               for k, v in out.items() if 'num_batches' not in k)


def test_a_hook_that_is_gone_when_a_checkpointed_block_runs_again():
    made = block(with_cp=True)
    hook = made.bn3.register_forward_hook(lambda *args: None)
    x = image().requires_grad_()
    out = made(x)
    hook.remove()
    out.sum().backward()
    assert x.grad.isfinite().all()


def test_statistics_that_were_switched_off_stay():
    made = block()
    made.bn3.track_running_stats = False
    before = made.bn3.running_mean.clone()
    made(image())
    assert torch.equal(made.bn3.running_mean, before)


@pytest.mark.since_torch('2.5', 'networks in float16 on a CPU')
def test_a_variance_too_large_for_a_half():
    made = block(dtype=torch.float16)
    made.conv3.weight.data.mul_(5e2)
    exact = copy.deepcopy(made).double()
    made(image(dtype=torch.float16))
    exact(image(dtype=torch.float16).double())
    torch.testing.assert_close(made.bn3.running_var.double(),
                               exact.bn3.running_var, rtol=2e-2, atol=0)


@pytest.mark.core
def test_fake_tensors_and_forward_mode_run_the_modules(calls):
    from torch._subclasses import FakeTensorMode
    made = block()
    x = image()
    with torch.autograd.forward_ad.dual_level():
        made(torch.autograd.forward_ad.make_dual(x, x))
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        made(mode.from_tensor(x))
    assert not calls


@pytest.mark.core
def test_second_derivatives(calls):
    made = block()
    assert torch.autograd.gradgradcheck(
        made, image((2, 16, 2, 2)).add_(.1).requires_grad_(), fast_mode=True)
    assert calls


def test_recording_leaves_it_fused_and_changes_no_bit(models, calls):
    net = models.build(SMALL)
    net.train()
    x = torch.randn(2, 3, 32, 32)
    results = []
    for recorded in (False, True):
        twin = copy.deepcopy(net)
        calls.clear()
        with TrajectoryRecorder(twin) if recorded else nullcontext():
            out = twin(x)[-1]
        assert len(calls) == 3
        out.sum().backward()
        results.append([out, *(p.grad for p in twin.parameters()),
                        *twin.buffers()])
    assert all(map(torch.equal, *results))


def test_a_hook_on_the_last_convolution_keeps_what_it_saw(calls):
    made, seen = block().eval(), []
    made.conv3.register_forward_hook(
        lambda module, args, out: seen.extend([out, out.clone()]))
    with torch.no_grad():
        made(image())
    assert calls and torch.equal(*seen)


def test_the_key_switches_it_off(models, calls):
    x = torch.randn(2, 3, 32, 32)
    models.build(dict(SMALL, fused=False))(x)
    assert not calls
    models.build(SMALL)(x)
    assert len(calls) == 3


@pytest.mark.since_torch('2.5', 'one graph')
@pytest.mark.parametrize('step, training', [
    pytest.param('StepAdaptor', True, marks=pytest.mark.core),
    *(pytest.param(step, training, marks=pytest.mark.long)
      for step, training in [
          ('StepAdaptor', False), ('SRMAttention', True),
          ('FCAAttention', True), ('SEMAttention', True),
          ('SoftmaxStepAdaptor', True), ('SGEAttention', False),
          ('CBAMAttention', True), ('TimmAttention', True)])])
def test_compiled_without_a_graph_break(step, training, monkeypatch):
    """The tail is fused there as well: no BatchNorm is called at its end."""
    torch._dynamo.reset()
    monkeypatch.setattr(tail_check, '_checked', {})
    made = block(step).train(training)
    twin, x, norms = copy.deepcopy(made), image(), []

    def count_norms(graph, inputs):
        norms.append(sum(node.target is nn.functional.batch_norm
                         for node in graph.graph.nodes))
        return torch._dynamo.lookup_backend('aot_eager')(graph, inputs)

    made.forward = torch.compile(
        made.forward, backend=count_norms, fullgraph=True)
    got = run_as_it_is(made, x)
    assert not tail_check._checked  # no compiler sees the kernels' check
    want = run_as_it_is(twin, x)
    for key, value in want.items():
        if value is not None:
            torch.testing.assert_close(got[key], value, atol=1e-11, rtol=1e-10)
    of_step = sum(isinstance(m, nn.BatchNorm2d) for m in twin.step.modules())
    # Dynamo may take a block twice before it is done.
    assert {*norms} == {2 + of_step + (step in UNFUSED)}


@pytest.mark.core
@pytest.mark.since_torch('2.5', 'one graph')
def test_one_graph_for_the_whole_backbone(models):
    torch._dynamo.reset()
    net = models.build(SMALL)
    net.train()
    found = torch._dynamo.explain(net)(torch.randn(2, 3, 32, 32))
    assert (found.graph_count, found.graph_break_count) == (1, 0)


@pytest.mark.core
def test_the_docs_say_what_an_older_torch_does_instead(request):
    text = request.config.rootpath.joinpath('docs/performance.md').read_text()
    said = re.search(r'fullgraph=True` fails at the\nfirst call with '
                     r'`torch._dynamo.exc.Unsupported: ([^`]*)`', text)[1]
    if digit_version(torch.__version__) >= digit_version('2.2'):
        return
    made, x = block().eval(), image()
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported,
                       match=' '.join(said.split())):
        torch.compile(made, fullgraph=True, backend='eager')(x)
    torch._dynamo.reset()
    got = torch.compile(made, backend='eager')(x)
    torch.testing.assert_close(got, made(x), atol=1e-11, rtol=1e-10)


def exported(net, x):
    return torch.export.export(net, (x, ), strict=False).module()


def traced(net, x):
    return torch.jit.trace(net, x, check_trace=False)


@pytest.mark.core
@pytest.mark.parametrize('make', [
    pytest.param(exported, marks=pytest.mark.since_torch(
        '2.5', 'torch.export without Dynamo')), traced])
def test_exports(models, make, calls):
    net = models.build(SMALL)
    net.eval()
    x = torch.randn(2, 3, 32, 32)
    made = make(net, x)
    assert not calls
    with torch.no_grad():
        for got, want in zip(made(x), net(x)):
            torch.testing.assert_close(got, want, atol=1e-4, rtol=1e-4)


@pytest.mark.long
def test_the_onnx_exporter_of_torch_2_9(models, tmp_path):
    """tools/export_onnx.py takes the older one, which needs less."""
    onnxruntime = pytest.importorskip('onnxruntime')
    pytest.importorskip('onnxscript')
    if not hasattr(torch.onnx, 'ONNXProgram') or torch.__version__ < '2.9':
        pytest.skip('torch below 2.9')
    net = models.build(SMALL)
    net.eval()
    x, path = torch.randn(2, 3, 32, 32), str(tmp_path / 'net.onnx')
    torch.onnx.export(net, (x, ), path, dynamo=True)
    session = onnxruntime.InferenceSession(
        path, providers=['CPUExecutionProvider'])
    got = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    with torch.no_grad():
        for a, b in zip(got, net(x)):
            torch.testing.assert_close(
                torch.from_numpy(a), b, atol=1e-4, rtol=1e-4)
