import math

import pytest
import torch

from stepnet_mm.stiffness import (
    neural_stiffness_index,
    norm_ratio,
    nsi,
    sample_norm,
)

INF, NAN = math.inf, math.nan
PER_SAMPLE = torch.tensor([.2, .5, 1.])
PER_CHANNEL = torch.rand(
    3, 2, 1, 1, generator=torch.Generator().manual_seed(0)) + .1


def random_states(dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(
        2, 3, 2, 4, 5, generator=generator, dtype=torch.float64).to(dtype)


def by_loop(x_t, x_next, step_at):
    """Eq. 4, one number at a time; step_at(n, c) is the step size."""
    indices = [range(size) for size in x_t.shape[1:]]
    nsi = []
    for n in range(len(x_t)):
        upper = lower = 0.
        for c in indices[0]:
            for h in indices[1]:
                for w in indices[2]:
                    x, y = x_t[n, c, h, w].item(), x_next[n, c, h, w].item()
                    upper += ((y - x) / step_at(n, c))**2
                    lower += x**2
        nsi.append(math.sqrt(upper) / math.sqrt(lower))
    return torch.tensor(nsi, dtype=torch.float64)


@pytest.mark.parametrize('step, step_at', [
    (2, lambda n, c: 2),
    (torch.tensor(.5), lambda n, c: .5),
    (PER_SAMPLE, lambda n, c: PER_SAMPLE[n].item()),
    (PER_CHANNEL, lambda n, c: PER_CHANNEL[n, c].item()),
    (PER_CHANNEL[:1], lambda n, c: PER_CHANNEL[0, c].item()),
])
def test_equals_a_loop(step, step_at):
    x_t, x_next = random_states()
    nsi = neural_stiffness_index(x_t, x_next, step)
    expected = by_loop(x_t, x_next, step_at)
    torch.testing.assert_close(nsi, expected, rtol=1e-12, atol=0)


def test_steps_and_states_of_few_numbers():
    x_t = torch.ones(2, 2)
    assert neural_stiffness_index(x_t, 3 * x_t).tolist() == [2., 2.]
    nsi = neural_stiffness_index(x_t, 2 * x_t, torch.tensor([1., .5]))
    assert nsi.tolist() == [1., 2.]
    x_t, x_next = torch.tensor([1., -2.]), torch.tensor([3., -1.])
    nsi = neural_stiffness_index(x_t, x_next, torch.tensor([1., 2.]))
    assert nsi.tolist() == [2., .25]
    zero = torch.zeros(2)
    assert neural_stiffness_index(x_t, x_t + zero, zero).tolist() == [0., 0.]
    assert neural_stiffness_index(x_t, x_next, 0.).tolist() == [INF, INF]
    assert neural_stiffness_index(x_t[:0], x_t[:0]).shape == (0, )
    with pytest.raises(ValueError, match='x_t and x_next'):
        neural_stiffness_index(torch.zeros(2, 3), torch.zeros(3))


@pytest.mark.parametrize('bad', [INF, -INF, NAN])
def test_a_value_that_is_not_finite_gives_inf_in_its_sample_only(bad):
    finite = torch.ones(2, 3)
    broken = finite.clone()
    broken[1, 2] = bad
    for x_t, x_next in ((broken, finite), (finite, broken), (broken, broken)):
        assert neural_stiffness_index(x_t, x_next).tolist() == [0., INF]


def test_half_precision_neither_stalls_nor_overflows():
    ones = torch.ones(1, 64, 64, dtype=torch.bfloat16)
    norm = sample_norm(ones)
    assert norm.item() == 64 and norm.dtype == torch.float32
    for value in (300., 40000.):
        x_t = torch.full((1, 8), value, dtype=torch.float16)
        assert neural_stiffness_index(x_t, -x_t).item() == pytest.approx(2.)


def test_norm_ratio_table():
    a = torch.tensor([0., 1., 3., INF, 1., INF, NAN, 1., NAN])
    b = torch.tensor([0., 0., 2., 1., INF, INF, 1., NAN, NAN])
    expected = [0., INF, 1.5] + [INF] * 6
    assert norm_ratio(a, b).tolist() == expected


@pytest.mark.parametrize('scale', [1e-42, 1e36])
@pytest.mark.parametrize('looks', [True, False])
def test_values_whose_squares_leave_float32(scale, looks, monkeypatch):
    monkeypatch.setattr('stepnet_mm.stiffness.nsi.looks_at_values',
                        lambda x: looks)
    x_t, x_next = random_states()
    expected = neural_stiffness_index(x_t, x_next, .25)
    found = neural_stiffness_index(
        (x_t * scale).float(), (x_next * scale).float(), .25)
    torch.testing.assert_close(  # subnormals have few digits
        found.double(), expected, rtol=2e-2 if scale < 1e-38 else 1e-5,
        atol=0)


@pytest.mark.parametrize('chunk', [1, 80])
def test_few_samples_are_widened_at_once(chunk, monkeypatch):
    """On a GPU, where each is normed in double precision too."""
    x = random_states(torch.float32)[0] * 1e-30
    expected, widened = sample_norm(x), []
    norm = torch.linalg.vector_norm

    def watched(x, *args, dtype, **kwargs):
        if dtype == torch.float64:
            widened.append(x.numel())
        return norm(x, *args, dtype=dtype, **kwargs)

    monkeypatch.setattr(nsi, 'looks_at_values', lambda x: False)
    monkeypatch.setattr(nsi, 'CHUNK', chunk)
    monkeypatch.setattr(torch.linalg, 'vector_norm', watched)
    torch.testing.assert_close(sample_norm(x), expected, rtol=1e-6, atol=0)
    assert sum(widened) == 120 and max(widened) == max(chunk, 40)
    assert sample_norm(x[:0]).shape == (0, )


def test_ordinary_norms_keep_their_bits():
    for scale in (1e-9, 1., 1e9):
        x = random_states(torch.float32)[0] * scale
        expected = torch.linalg.vector_norm(x, dim=(1, 2, 3))
        assert torch.equal(sample_norm(x), expected)
        x[1] *= 1e-30 / scale  # one sample far from one changes no other
        assert torch.equal(sample_norm(x)[[0, 2]], expected[[0, 2]])


@pytest.mark.parametrize('value, norm', [(0., 0.), (-INF, INF), (NAN, NAN)])
def test_norms_at_the_ends(value, norm):
    x = torch.zeros(2, 3)
    x[1, 2] = value
    torch.testing.assert_close(
        sample_norm(x), torch.tensor([0., norm]), equal_nan=True)
