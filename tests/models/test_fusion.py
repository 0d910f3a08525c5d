import copy

import pytest
import torch
from torch import nn

from stepnet_mm.models import fusion, step_block_class
from stepnet_mm.ops import tail_kernels
from stepnet_mm.steps import build_step

library = pytest.importorskip('mmdet.models.backbones.resnet')


def block(step='StepAdaptor', kind=library.Bottleneck, dtype=torch.float64):
    """A step block of 16 channels, all parameters away from their starts."""
    made = step_block_class(kind, (kind, ))(16, 16 // kind.expansion)
    made.step = build_step(step, 16)
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
def calls(monkeypatch):
    """One entry for each end of a block that ran fused."""
    seen = []

    def watch(name):
        run = getattr(fusion, name)
        monkeypatch.setattr(
            fusion, name, lambda *args: seen.append(args[0]) or run(*args))

    watch('_run_in_place')
    watch('_run_by_moments')
    return seen


def run(made, x, fused, grad=True):
    """Output, all gradients and all buffers of a copy."""
    made = copy.deepcopy(made)
    made.fused = fused
    return results_of(made, x, grad)


def results_of(made, x, grad=True):
    x = x.clone().requires_grad_(grad)
    with torch.set_grad_enabled(grad):
        out = made(x)
    found = dict(out=out, **dict(made.named_buffers()))
    if grad:
        torch.manual_seed(2)
        out.backward(torch.randn(out.shape).to(out.dtype))
        found.update({f'{name}.grad': p.grad
                      for name, p in (('x', x), *made.named_parameters())
                      if p.grad is not None})
    return found


def hooked(name, method='register_forward_hook'):
    return lambda made: getattr(made.get_submodule(name), method)(
        lambda *args: None)


def with_norm(training=True, tracks=True, **kwargs):
    """The last norm is another one that has seen a batch."""

    def change(made):
        made.bn3 = nn.BatchNorm2d(16, **kwargs).double()
        made(image())
        made.bn3.track_running_stats = tracks
        made.train(training)

    return change


def frozen(*names, training):
    """Parts of a block are frozen, but its step learns."""

    def change(made):
        for name in names:
            made.get_submodule(name).requires_grad_(False)
        made.bn3.train(training)
        made.step.requires_grad_(True)

    return change


#: What is done to a block. Goldens compare both ends of one with every step.
FIT = dict(
    **dict.fromkeys(('adaptor', 'constant', 'spectrum'), lambda made: None),
    no_affine=with_norm(affine=False),
    frozen_norm=frozen('bn3', 'conv3', training=False),
    frozen_but_for_the_step=frozen('', training=True))
STEPS = dict(spectrum=dict(type='FCAAttention', reduction=4),
             constant='ConstantStep', no_affine='SRMAttention',
             step_reads_maps='MaxPoolStepAdaptor')
UNFIT = dict(
    step_reads_maps=lambda made: None,
    cumulative=with_norm(momentum=None, eps=.1),
    untracked=with_norm(track_running_stats=False),
    drop_path=lambda made: setattr(made, 'drop_path', nn.Dropout(1e-9)),
    other_activation=lambda made: setattr(made, 'relu', nn.ReLU6()),
    patched=lambda made: setattr(made.bn3, 'forward', made.bn3.forward),
    hook_on_the_norm=hooked('bn3'),
    hook_on_the_step=hooked('step'),
    hook_on_the_relu=hooked('relu'),
    pre_hook=hooked('bn3', 'register_forward_pre_hook'),
    backward_hook=hooked('bn3', 'register_full_backward_hook'),
    backward_pre_hook=hooked('bn3', 'register_full_backward_pre_hook'))


@pytest.mark.core
@pytest.mark.parametrize('name', FIT)
def test_as_the_modules_one_by_one(name, calls):
    """With a gradient and without, by two roads on a CPU."""
    made = block(STEPS.get(name, 'StepAdaptor'))
    FIT[name](made)
    for grad in (True, False):
        calls.clear()
        fused, plain = [run(made, image(), fused, grad)
                        for fused in (True, False)]
        assert len(calls) == 1
        torch.testing.assert_close(fused, plain, atol=1e-12, rtol=1e-11)


@pytest.mark.parametrize('name', UNFIT)
def test_what_does_not_fit_runs_the_modules(name, calls):
    made, results = block(STEPS.get(name, 'StepAdaptor')).eval(), []
    UNFIT[name](made)
    for made.fused in (True, False):
        results.append(made(image()))
    assert torch.equal(*results) and not calls


@pytest.mark.core
def test_global_hooks_see_every_module(calls):
    made, seen = block(), []
    with nn.modules.module.register_module_forward_hook(
            lambda module, *args: seen.append(module)):
        made(image())
    assert not calls and made.bn3 in seen and made.step in seen


@pytest.mark.core
def test_checkpointing_gives_the_same(calls):
    made = block()
    twin = copy.deepcopy(made)
    twin.with_cp = True
    one, two = run(made, image(), True), run(twin, image(), True)
    assert len(calls) == 3  # the second block ran again in its backward
    assert all(torch.equal(one[key], two[key])
               for key in one if key == 'out' or key.endswith('grad'))


@pytest.mark.since_torch('2.5', 'networks in float16 on a CPU')
def test_a_variance_that_is_too_large_for_half_precision(calls):
    made = block(dtype=torch.float16)
    made.conv3.weight.data.mul_(5e2)
    found = run(made, image(dtype=torch.float16), True)
    assert calls and found['bn3.running_var'].isfinite().all()
    assert {value.dtype for key, value in found.items()
            if 'num_batches' not in key} == {torch.float16}


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


@pytest.mark.parametrize('name', ['conv1', 'conv3'])
def test_a_hook_on_a_convolution_keeps_what_it_saw(name, calls):
    made, seen = block().eval(), []
    getattr(made, name).register_forward_hook(
        lambda module, args, out: seen.extend([out, out.clone()]))
    with torch.no_grad():
        made(image())
    assert calls and torch.equal(*seen)


@pytest.mark.core
@pytest.mark.since_torch('2.5', 'one graph')
def test_compiled_without_a_graph_break(monkeypatch):
    """The tail is fused there as well: no BatchNorm is called at its end."""
    torch._dynamo.reset()
    monkeypatch.setattr(tail_kernels, '_checked', {})
    made = block(kind=library.BasicBlock)
    twin, x, norms = copy.deepcopy(made), image(), []

    def count_norms(graph, inputs):
        norms.append(sum(node.target is nn.functional.batch_norm
                         for node in graph.graph.nodes))
        return torch._dynamo.lookup_backend('aot_eager')(graph, inputs)

    made.forward = torch.compile(
        made.forward, backend=count_norms, fullgraph=True)
    got = results_of(made, x)
    assert not tail_kernels._checked  # no compiler sees the kernels' check
    torch.testing.assert_close(
        got, results_of(twin, x), atol=1e-11, rtol=1e-10)
    assert {*norms} == {2}  # the first and the step's
