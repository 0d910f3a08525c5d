"""Each check finds what it is there for."""
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from stepnet_mm.device_checks import (
    backbone,
    compiled,
    cost,
    detector,
    kernels,
    networks,
    resume,
    steps,
    tns_hook,
)
from stepnet_mm.launch.report import Report, Unavailable
from stepnet_mm.ops import tail_check
from stepnet_mm.steps import SEAttention

CPU = torch.device('cpu')


def rows(check, device=CPU):
    report = Report()
    check(report, device)
    return [(row['level'], row['text']) for row in report.rows]


def levels(found):
    return [level for level, _ in found]


@pytest.mark.core
def test_a_kernel_with_a_wrong_number_is_named(monkeypatch):
    assert set(levels(rows(kernels.check))) <= {'ok', 'skipped'}
    right = kernels.check_kernels(CPU)
    wrong = [replace(right[0], ok=False, difference=7., reason='7 times off'),
             *right[1:]]
    monkeypatch.setattr(kernels, 'check_kernels', lambda device: wrong)
    found = rows(kernels.check)
    assert found[0][0] == 'error'
    assert f'{right[0].kernel}: 7 times off' in found[0][1]
    assert set(levels(found[1:])) <= {'ok', 'skipped'}


def test_a_gpu_without_triton(monkeypatch):
    monkeypatch.setattr(kernels, 'HAS_TRITON', False)
    (level, text), = rows(kernels.check, torch.device('cuda'))
    assert level == 'warning' and 'Triton is not installed' in text


@pytest.fixture
def compared(monkeypatch):
    """compared(error) -> the rows where the fused tail makes that error."""

    def compared(error):
        def run(device, fused, dtype, layout):
            off = error if fused else 1e-6 * (dtype != torch.float64)
            return backbone.Result(*[torch.ones(9) + off] * 2)

        monkeypatch.setattr(backbone, 'DTYPES', (torch.float32, ))
        monkeypatch.setattr(backbone, '_run', run)
        return rows(backbone.check)

    return compared


@pytest.mark.parametrize('error', [.02, float('nan')])
def test_a_fused_tail_that_differs_is_an_error(compared, error):
    contiguous, channels_last = compared(error)
    assert contiguous[0] == channels_last[0] == 'error'
    assert contiguous[1].startswith('float32 contiguous: off float64 by ')
    assert set(levels(compared(2e-6))) == {'ok'}


def test_no_fused_tail_where_there_should_be_one(compared, monkeypatch):
    monkeypatch.setattr(
        backbone.ResidualTail, 'supports', staticmethod(lambda *_: False))
    contiguous, channels_last = compared(0)
    assert contiguous[0] == 'warning'
    assert contiguous[1].endswith('the lines of the kernels say why')
    assert channels_last[0] == 'ok'


def test_a_precision_that_is_not_there_is_skipped(monkeypatch):
    monkeypatch.setattr(networks.nn.functional, 'conv2d', lambda x, _: x)
    with pytest.raises(Unavailable, match='float16: autocast on cpu gives'):
        with networks.precision(CPU, torch.float16):
            pass


def test_a_step_that_is_not_finite_is_named(monkeypatch):
    monkeypatch.setattr(steps, 'DTYPES', (torch.float32, ))
    monkeypatch.setattr(SEAttention, 'forward',
                        lambda self, x, f: f * float('nan'))
    found = {text.partition(':')[0]: level
             for level, text in rows(steps.check)}
    assert found.pop('SEAttention') == 'error'
    assert set(found.values()) <= {'ok', 'skipped'} and len(found) > 10


def test_a_hook_that_changes_the_training_is_an_error(monkeypatch):
    models = iter([torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)])
    monkeypatch.setattr(
        tns_hook, 'train_tiny', lambda *_, **__: next(models))
    with pytest.raises(RuntimeError, match='TNSHook: expected the weights of '
                       'a training without it, got others, weight the'):
        rows(tns_hook.check)


def test_a_training_that_was_not_killed_is_an_error(monkeypatch):
    monkeypatch.setattr(resume, 'train_tiny', lambda *_, **__: None)
    with pytest.raises(RuntimeError, match='got exit code 0 before'):
        rows(resume.check)


def test_a_detector_without_operators_is_skipped(monkeypatch):
    monkeypatch.setattr(detector.importlib.util, 'find_spec', lambda _: True)
    monkeypatch.setattr(detector, 'import_error', lambda _: 'no mmcv._ext')
    with pytest.raises(Unavailable, match='no mmcv._ext.: classification'):
        rows(detector.check)
    monkeypatch.setattr(detector, 'import_error', lambda _: '')
    monkeypatch.setattr(
        detector.importlib, 'import_module', lambda _: SimpleNamespace(
            get_compiling_cuda_version=lambda: 'not available'))
    with pytest.raises(Unavailable, match='compiled for the CPU only'):
        rows(detector.check, torch.device('cuda'))


def times(fused):
    return {'plain': [1.] * 5, 'StepNet': fused,
            'StepNet, fused=False': [1.2] * 5}


@pytest.mark.parametrize('fused, level, verdict', [
    ([1.1, 1.1, 1.14, 1.1, 9.], 'ok', 'fused tail 1.10 of plain, without it '
     '1.20; 0.92 to 0.95 of the time without it in 5 rounds (batch 2, 96 px): '
     'faster, keep it'),
    ([1.3, 1.1, 1.1, 1.3, 1.3], 'ok', '; 0.92 to 1.08 of the time without it '
     'in 5 rounds (batch 2, 96 px): no sure difference, keep it; a machine '
     'without other work tells more'),
    ([1.3, 1.3, 1.1, 1.3, 1.3], 'warning', 'slower: switch it off: '
     'backbone.fused=False')])
def test_the_verdict(fused, level, verdict):
    report = Report()
    cost.add_verdict(report, times(fused), cost.sizes(CPU))
    assert report.rows[0]['level'] == level
    assert report.rows[0]['text'].endswith(verdict)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(cost, 'ROUNDS', 3)
    monkeypatch.setattr(cost, 'sizes', lambda _: (2, 32))
    monkeypatch.setattr(cost, 'NETWORKS', {
        name: dict(cfg, depth=18) for name, cfg in cost.NETWORKS.items()})


@pytest.mark.long
def test_the_four_networks_side_by_side(small):
    report = Report()
    cost.check(report, CPU)
    *networks, verdict = report.rows
    assert [row['text'].partition(':')[0] for row in networks] == list(
        cost.NETWORKS)
    assert networks[0]['of_plain'] == 1
    assert len(networks[0]['seconds_of_rounds']) == 3
    # The fused tail keeps no f.
    assert networks[2]['saved_megabytes'] < networks[3]['saved_megabytes']
    assert verdict['text'].startswith('fused tail ')


def test_no_compiler_is_no_error(monkeypatch):
    def fail(*_):
        raise RuntimeError('no gcc\nand more')

    monkeypatch.setattr(compiled.torch, 'compile', fail)
    with pytest.raises(Unavailable, match=r'does not work here \(no gcc\)'):
        rows(compiled.check, torch.device('cuda'))
    with pytest.raises(Unavailable, match='minutes on a CPU'):
        rows(compiled.check)


@pytest.mark.long
def test_the_verdict_on_compiled_networks(small, monkeypatch, recwarn):
    # The kernels' check comes while the compiler is at work.
    monkeypatch.setattr(tail_check, '_checked', {})
    # The backend that generates no code.
    monkeypatch.setattr(
        cost.torch, 'compile', partial(torch.compile, backend='eager'))
    (_, text), = rows(compiled.compare)
    assert text.startswith('fused tail ')
    assert not [w for w in recwarn if 'backbone.fused' in str(w.message)]
