import pytest
import torch
from ablate_steps import StepSizeMoments, ablate_step_sizes
from torch import nn

from stepnet_mm.steps import SEAttention, StepAdaptor


class Net(nn.ModuleList):
    """Blocks x + f ⊗ Δt with f = x, from their step-size modules."""

    def forward(self, x):
        for step in self:
            x = x + step(x, x)
        return x


@pytest.fixture
def net():
    net = Net([SEAttention(8, reduction=2), StepAdaptor(8)]).double().eval()
    for parameter in net.parameters():
        nn.init.normal_(parameter)
    return net


@pytest.fixture
def x():
    return torch.randn(12, 8, 5, 5, dtype=torch.float64)


def step_sizes(net, x):
    """Δt of each block, (N, C), by hand."""
    found = []
    for step in net:
        delta = step.step_size(x, x)
        found.append(delta[:, :, 0, 0])
        x = x + x * delta
    return found


@pytest.mark.parametrize('sizes', [[5, 4, 3], [12, 0]])
def test_moments_of_any_batches_are_those_of_all_samples(net, x, sizes):
    with torch.no_grad():
        expected, before = step_sizes(net, x), net(x)
        found, moments = ablate_step_sizes(net, lambda: torch.cat(
            [net(batch) for batch in x.split(sizes)]))
    torch.testing.assert_close(found['trained'], before)
    assert [*moments] == ['0', '1']
    for found, delta in zip(moments.values(), expected):
        numbers = found.numbers()
        assert found.samples == 12 and numbers['over_positions'] == 0
        torch.testing.assert_close(found.mean, delta.mean(0))
        assert numbers['over_samples'] == pytest.approx(
            delta.var(0, unbiased=False).mean().sqrt().item())
        assert numbers['over_channels'] == pytest.approx(
            delta.mean(0).std(unbiased=False).item())


def test_a_map_of_step_sizes_varies_between_and_within_samples():
    delta = torch.rand(6, 2, 3, 4, dtype=torch.float64)
    found = StepSizeMoments.of(delta[:2]).merged(StepSizeMoments.of(delta[2:]))
    torch.testing.assert_close(found.mean, delta.mean((0, 2, 3)))
    total = delta.var((0, 2, 3), unbiased=False)
    torch.testing.assert_close(found.between + found.within, total)
    assert found.numbers()['over_positions'] == pytest.approx(
        delta.var((2, 3), unbiased=False).mean().sqrt().item())


def test_an_ablation_fixes_the_means_that_it_saw(net, x):
    with torch.no_grad():
        first, second = (d.mean(0) for d in step_sizes(net, x))
        found, _ = ablate_step_sizes(net, lambda: net(x))
        trained = net(x)

    def grown(*values):
        y = x
        for value in values:
            y = y * (1 + value.view(1, -1, 1, 1))
        return y

    assert found['trained'].equal(trained)
    torch.testing.assert_close(found['per_channel'], grown(first, second))
    torch.testing.assert_close(found['per_block'],
                               grown(first.mean(), second.mean()))
    assert not found['per_channel'].equal(trained)


def test_models_without_step_sizes(net):
    for model, why in ((nn.Linear(2, 2), 'step-size modules in Linear.*none'),
                       (torch.compile(net), 'not compiled'),
                       (net, 'evaluate: expected it to run')):
        with pytest.raises(ValueError, match=why):
            ablate_step_sizes(model, dict)
