import pytest
import torch
from torch import nn

from stepnet_mm.recording import (
    StepSizeMoments,
    StepSizeRecorder,
    ablate_step_sizes,
    fixed_step_sizes,
)
from stepnet_mm.steps import ConstantStep, SEAttention, StepAdaptor

pytestmark = pytest.mark.core


class Net(nn.Module):
    """Two blocks, x + f ⊗ Δt with f = x."""

    def __init__(self, *steps):
        super().__init__()
        self.blocks = nn.ModuleList(steps)

    def forward(self, x):
        for step in self.blocks:
            x = x + step(x, x)
        return x


@pytest.fixture
def net():
    torch.manual_seed(0)
    net = Net(SEAttention(8, reduction=2), StepAdaptor(8)).double().eval()
    for parameter in net.parameters():
        nn.init.normal_(parameter)
    return net


@pytest.fixture
def x():
    return torch.randn(12, 8, 5, 5, dtype=torch.float64)


def step_sizes(net, x):
    """Δt of each block, (N, C), by hand."""
    found = []
    for step in net.blocks:
        delta = step.step_size(x, x)
        found.append(delta[:, :, 0, 0])
        x = x + x * delta
    return found


@pytest.mark.parametrize('sizes', [[12], [5, 4, 3], [1] * 12])
def test_moments_of_any_batches_are_those_of_all_samples(net, x, sizes):
    with torch.no_grad(), StepSizeRecorder(net) as recorder:
        for batch in x.split(sizes):
            net(batch)
    assert [*recorder.moments] == ['blocks.0', 'blocks.1']
    with torch.no_grad():
        expected = step_sizes(net, x)
    for moments, delta in zip(recorder.moments.values(), expected):
        assert moments.samples == 12
        torch.testing.assert_close(moments.mean, delta.mean(0))
        variance = delta.var(0, unbiased=False)
        torch.testing.assert_close(moments.variance, variance)
        assert moments.over_samples == pytest.approx(
            variance.mean().sqrt().item())
        assert moments.over_channels == pytest.approx(
            delta.mean(0).std(unbiased=False).item())


def test_recording_changes_nothing_and_leaves_no_hook(net, x):
    before = net(x)
    with StepSizeRecorder(net) as recorder:
        inside = net(x)
    assert inside.equal(before) and net(x).equal(before)
    assert recorder.moments['blocks.0'].samples == 12
    assert not any(step.delta._forward_hooks for step in net.blocks)


def test_a_map_of_step_sizes_counts_by_its_mean_over_space():
    delta = torch.rand(6, 1, 3, 4)
    moments = StepSizeMoments.of(delta)
    torch.testing.assert_close(moments.mean, delta.mean().double()[None])
    torch.testing.assert_close(
        moments.variance[0], delta.double().mean((1, 2, 3)).var(
            unbiased=False))


@pytest.mark.parametrize('value', [torch.tensor(.25),
                                   torch.linspace(.1, .8, 8)])
def test_fixed_step_sizes(net, x, value):
    before = net(x)
    with fixed_step_sizes(net, {'blocks.0': value, 'blocks.1': value}):
        fixed = net(x)
    by_hand = x * (1 + value.double().view(1, -1, 1, 1))**2
    torch.testing.assert_close(fixed, by_hand, rtol=1e-6, atol=0)
    assert net(x).equal(before)


def test_hooks_are_gone_after_an_error(net, x):
    for context in (StepSizeRecorder(net),
                    fixed_step_sizes(net, {'blocks.0': torch.tensor(1.)})):
        with pytest.raises(KeyError), context:
            raise KeyError
    assert not any(step.delta._forward_hooks for step in net.blocks)


def test_an_ablation_fixes_the_means_that_it_saw(net, x):
    with torch.no_grad():
        first, second = (d.mean(0) for d in step_sizes(net, x))
        found = ablate_step_sizes(net, lambda: dict(y=net(x)))
        trained = net(x)

    def grown(*values):
        y = x
        for value in values:
            y = y * (1 + value.view(1, -1, 1, 1))
        return y

    assert found.trained['y'].equal(trained)
    torch.testing.assert_close(found.per_channel['y'], grown(first, second))
    torch.testing.assert_close(found.per_block['y'],
                               grown(first.mean(), second.mean()))
    assert not found.per_channel['y'].equal(trained)


def test_constant_step_sizes_lose_nothing():
    net = Net(ConstantStep(4, value=.3), ConstantStep(4, value=.2))
    x = torch.randn(3, 4, 2, 2)
    found = ablate_step_sizes(net, lambda: dict(y=net(x)))
    torch.testing.assert_close(found.per_channel['y'], found.trained['y'])
    assert found.moments['blocks.0'].over_samples == 0


def test_wrong_models_and_names(net):
    with pytest.raises(ValueError, match='step-size modules in Linear.*none'):
        StepSizeRecorder(nn.Linear(2, 2))
    with pytest.raises(ValueError, match=r"blocks\.1.*got \['block'\]"):
        with fixed_step_sizes(net, dict(block=torch.tensor(1.))):
            pass
    with pytest.raises(ValueError, match='not compiled'):
        StepSizeRecorder(torch.compile(net))
