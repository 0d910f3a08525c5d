"""The check of the kernels, and what a block does where one is wrong."""
import types
import warnings

import pytest
import torch

from stepnet_mm.ops import ResidualTail, tail_check, tail_cpu
from stepnet_mm.ops.tail_check import KERNELS, check_kernels, checked_kernels

CPU, PLAIN = torch.device('cpu'), torch.contiguous_format


@pytest.fixture(autouse=True)
def unchecked(monkeypatch):
    """As in a new process."""
    monkeypatch.setattr(tail_check, '_checked', {})


def faulty(name, change):
    """The CPU's kernels with one that is wrong."""
    module = types.SimpleNamespace(**vars(tail_cpu))
    setattr(module, name, lambda *args: change(
        getattr(tail_cpu, name)(*args)))
    return module


def use(monkeypatch, module):
    monkeypatch.setattr(tail_check, '_module', lambda device: module)


@pytest.mark.core
@pytest.mark.parametrize('dtype', [
    torch.float64, torch.float32, torch.bfloat16, pytest.param(
        torch.float16, marks=pytest.mark.since_torch('2.5', 'half'))])
def test_the_kernels_of_a_cpu_pass(dtype):
    results = check_kernels('cpu', [dtype])
    assert [r.kernel for r in results] == [*KERNELS]
    for result in results:
        assert result.ok and not result.reason, result
        assert result.difference < .5
        assert result.dtype == dtype and result.memory_format is PLAIN


def nudged(results):
    """The first result, a hundredth off at one place."""
    first = results[0] if isinstance(results, tuple) else results
    first.view(-1)[-2] += .01 + first.view(-1)[-2].abs() / 100
    return results


def failing(results):
    raise RuntimeError('no compiler')


@pytest.mark.parametrize('name, change, reason', [
    *((name, nudged, 'times what rounding explains') for name in KERNELS),
    ('scale_add_relu', torch.nan_to_num, 'NaN and inf are not where'),
    ('scale_add_relu', failing, 'RuntimeError: no compiler')])
def test_a_wrong_kernel_is_found(monkeypatch, name, change, reason):
    use(monkeypatch, faulty(name, change))
    failed = [r for r in check_kernels('cpu', [torch.float32]) if not r.ok]
    assert [r.kernel for r in failed] == [name]
    assert reason in failed[0].reason
    assert not failed[0].difference <= 1


def given(name, i, change):
    """The CPU's kernels, one of which gets another argument."""
    module = types.SimpleNamespace(**vars(tail_cpu))
    setattr(module, name, lambda *args: getattr(tail_cpu, name)(
        *args[:i], change(args[i]), *args[i + 1:]))
    return module


def failed_kernels():
    return [r.kernel for r in check_kernels('cpu', [torch.float32])
            if not r.ok]


LOSE = dict(NaN=lambda v: v.nan_to_num(posinf=torch.inf),
            inf=lambda v: v.clamp_max(1e30))


@pytest.mark.parametrize('lost', LOSE)
@pytest.mark.parametrize('name, i', [
    ('moments', 0), ('scale_add_relu', 1), ('mask_and_sum', 0),
    ('input_gradients', 0)])
def test_a_map_that_is_not_finite(monkeypatch, name, i, lost):
    """A loss scaler looks for the NaN and inf of gradients."""
    use(monkeypatch, given(name, i, LOSE[lost]))
    assert failed_kernels() == [name]


@pytest.mark.parametrize('name, i', [
    ('scale_add_relu', 1), ('input_gradients', 2)])
def test_a_kernel_that_writes_over_its_argument(monkeypatch, name, i):
    use(monkeypatch, given(name, i, lambda v: v.add_(1)))
    result, = [r for r in check_kernels('cpu', [torch.float32])
               if r.kernel == name]
    assert f'argument {i + 1}: expected it to be left' in result.reason


@pytest.mark.parametrize('has_b, has_d', [(True, False), (False, True)])
def test_a_variant_of_the_input_gradients(monkeypatch, has_b, has_d):
    def kernel(masked, z, a, b, c, d):
        wrong = (b is not None, d is not None) == (has_b, has_d)
        return tail_cpu.input_gradients(masked, z, a, b, c + wrong, d)

    module = types.SimpleNamespace(**vars(tail_cpu))
    module.input_gradients = kernel
    use(monkeypatch, module)
    assert failed_kernels() == ['input_gradients']


def test_a_table_without_strides(monkeypatch):
    """As of a constant step size behind frozen statistics."""
    dense = []
    use(monkeypatch, given('scale_add_relu', 3, lambda v: dense.append(
        v.is_contiguous()) or v))
    assert not failed_kernels() and not any(dense)


@pytest.mark.parametrize('memory_format', tail_check.FORMATS)
def test_what_the_samples_of_a_gpu_reach(memory_format):
    """All that the Triton kernels' programs may be given."""
    pytest.importorskip('triton')
    from stepnet_mm.ops.tail_triton import _Grid
    layouts = []
    for shape in (*tail_check.SHAPES, tail_check.LARGE):
        z = torch.empty(shape).to(memory_format=memory_format)
        grid = _Grid(z, sums=True).layout
        layouts.append((grid['C'] > grid['BLOCK_C'], grid['SPLITS'] > 1,
                        grid['TILES'] > 1))
    many_channels, split, many_tiles = zip(*layouts)
    assert any(many_channels)
    assert any(map(all, zip(split, many_tiles)))
    assert any(shape[1] % 64 for shape in tail_check.SHAPES)


def test_once_a_process_with_one_warning(monkeypatch):
    calls = []
    module = faulty('mask_and_sum', lambda r: calls.append(1) or nudged(r))
    use(monkeypatch, module)
    z = torch.rand(2, 3, 4, 4)
    with pytest.warns(UserWarning, match=(
            r'torch.float32, torch.contiguous_format on cpu, '
            r'got mask_and_sum: off by .*doctor')) as caught:
        assert not ResidualTail.supports(z, z)
    assert len(caught) == 1 and calls
    count = len(calls)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        assert not ResidualTail.supports(z, z)
    assert len(calls) == count
    with pytest.warns(UserWarning, match='torch.float64'):  # another dtype
        assert not ResidualTail.supports(z.double(), z.double())


@pytest.mark.core
def test_the_check_changes_nothing_outside():
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    with torch.autocast('cpu', torch.bfloat16), torch.device('meta'):
        assert checked_kernels(CPU, torch.float32, PLAIN) is tail_cpu
    assert torch.equal(torch.rand(3), expected)


def test_a_device_that_is_not_there():
    results = check_kernels('cuda')
    assert len(results) == len(KERNELS) * 3 * 2
    assert not any(r.ok for r in results) and all(r.reason for r in results)


@pytest.mark.gpu
def test_the_kernels_of_a_gpu_pass():
    for result in check_kernels('cuda'):
        assert result.ok, result
