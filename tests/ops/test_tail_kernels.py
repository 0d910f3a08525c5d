"""The check of the kernels, and what a block does where one is wrong."""
import pytest
import torch

from stepnet_mm.ops import ResidualTail, tail_cpu, tail_kernels
from stepnet_mm.ops.tail_kernels import KERNELS, check_kernels, usable_kernels

CPU, PLAIN = torch.device('cpu'), torch.contiguous_format


@pytest.fixture(autouse=True)
def unchecked(monkeypatch):
    """As in a new process."""
    monkeypatch.setattr(tail_kernels, '_checked', {})


@pytest.fixture
def replace(monkeypatch):
    """Replaces a kernel of the CPU by a function of the true one."""
    return lambda name, make: monkeypatch.setattr(
        tail_cpu, name, make(getattr(tail_cpu, name)))


def given(i, change):
    """A kernel that gets another argument."""
    return lambda kernel: lambda *args: kernel(
        *args[:i], change(args[i]), *args[i + 1:])


@pytest.mark.core
@pytest.mark.parametrize('dtype', [
    torch.float64, torch.float32, torch.bfloat16, pytest.param(
        torch.float16, marks=pytest.mark.since_torch('2.5', 'half'))])
def test_the_kernels_of_a_cpu_pass(dtype):
    results = check_kernels('cpu', [dtype])
    assert [r.kernel for r in results] == [*KERNELS]
    assert all(r.ok and r.difference < .5 for r in results), results


def nudged(kernel):
    """The first result, a hundredth off at one place."""
    def run(*args):
        results = kernel(*args)
        first = results[0] if isinstance(results, tuple) else results
        first.view(-1)[-2] += .01 + first.view(-1)[-2].abs() / 100
        return results
    return run


def overwriting(i):
    """A kernel that writes over an argument, after it was read."""
    return lambda kernel: lambda *args: (kernel(*args), args[i].add_(1))[0]


#: A loss scaler looks for the NaN and inf of gradients.
LOSE = [lambda v: v.nan_to_num(posinf=torch.inf), lambda v: v.clamp_max(1e30)]


def wrong_without(b, d):
    """Wrong where b or d alone is None."""
    def make(kernel):
        def run(masked, z, *sums):
            *_, m, grads = sums
            found = kernel(masked, z, *sums)
            kind = m.variance is None, grads.identity_mean is None
            return (found[0] + (kind == (b, d)), *found[1:])
        return run
    return make


@pytest.mark.parametrize('name, wrong, reason', [
    *((name, nudged, 'times what rounding explains') for name in KERNELS),
    ('output', given(0, lambda v: 1 / 0), 'ZeroDivisionError: division by'),
    *((name, given(i, lose), 'NaN and inf are not where')
      for name, i in dict(measure=0, output=1, step_gradient=0,
                          input_gradients=0).items()
      for lose in LOSE),
    ('output', overwriting(1), ''), ('input_gradients', overwriting(2), ''),
    ('input_gradients', wrong_without(True, False), ''),
    ('input_gradients', wrong_without(False, True), '')])
def test_a_wrong_kernel_is_found(replace, name, wrong, reason):
    replace(name, wrong)
    result, = [r for r in check_kernels('cpu', [torch.float32]) if not r.ok]
    assert result.kernel == name and reason in result.reason
    assert not result.difference <= 1


def test_once_a_process_with_one_warning(replace):
    calls = []
    replace('step_gradient', lambda kernel: lambda *args: calls.append(
        1) or nudged(kernel)(*args))
    z = torch.rand(2, 3, 4, 4)
    with pytest.warns(UserWarning, match=(
            r'torch.float32, torch.contiguous_format on cpu, '
            r'got step_gradient: off by .*doctor')) as caught:
        assert not ResidualTail.supports(z, z)
    count = len(calls)
    assert len(caught) == 1 and count
    assert not ResidualTail.supports(z, z)
    assert len(calls) == count


@pytest.mark.core
def test_the_check_changes_nothing_outside():
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    with torch.autocast('cpu', torch.bfloat16), torch.device('meta'):
        assert usable_kernels(CPU, torch.float32, PLAIN) is tail_cpu
    assert torch.equal(torch.rand(3), expected)


def test_a_device_that_is_not_there():
    results = check_kernels('cuda')
    assert len(results) == len(KERNELS) * 3 * 2
    assert not any(r.ok for r in results) and all(r.reason for r in results)


@pytest.mark.gpu
def test_the_kernels_of_a_gpu_pass():
    for result in check_kernels('cuda'):
        assert result.ok, result
