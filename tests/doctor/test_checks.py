"""Each check finds what it is there for."""
import os
import sys
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from torch.optim import SGD

from stepnet_mm.doctor import cost, numerics, trainings
from stepnet_mm.doctor.rows import Unavailable
from stepnet_mm.ops import tail_check
from stepnet_mm.steps import SEAttention


def rows(check, device='cpu'):
    return [(row['level'], row['text']) for row in check(device)]


def levels(found):
    return [level for level, _ in found]


@pytest.mark.core
def test_a_kernel_with_a_wrong_number_is_named(monkeypatch):
    assert levels(rows(numerics.kernels)) == ['ok', 'ok']
    right = numerics.check_kernels('cpu', [torch.float32])
    wrong = [replace(right[0], ok=False, difference=7., reason='7 times off'),
             *right[1:]]
    results = iter([wrong, right])
    monkeypatch.setattr(
        numerics, 'check_kernels', lambda *_: next(results))
    (level, text), (other, _) = rows(numerics.kernels)
    assert (level, other) == ('error', 'ok')
    assert f'{right[0].kernel}: 7 times off' in text


def test_a_gpu_without_triton(monkeypatch):
    monkeypatch.setattr(numerics, 'HAS_TRITON', False)
    (level, text), = rows(numerics.kernels, 'cuda')
    assert level == 'warning' and 'Triton is not installed' in text


@pytest.mark.parametrize('error, level', [
    (.02, 'error'), (float('nan'), 'error'), (2e-6, 'ok')])
def test_a_fused_tail_that_differs_is_an_error(monkeypatch, error, level):
    def run(device, fused, dtype, layout):
        off = error if fused else 1e-6 * (dtype != torch.float64)
        return [torch.ones(9) + off] * 2

    monkeypatch.setattr(numerics, '_run', run)
    found = rows(numerics.backbone)
    assert levels(found) == [level] * 2
    assert found[0][1].startswith('float32 contiguous: off float64 by ')


def test_a_step_that_is_not_finite_is_named(monkeypatch):
    monkeypatch.setattr(SEAttention, 'forward',
                        lambda self, x, f: f * float('nan'))
    found = {text.partition(':')[0]: level
             for level, text in rows(numerics.steps)}
    assert found.pop('SEAttention') == 'error'
    assert set(found.values()) <= {'ok', 'skipped'} and len(found) > 10


def test_a_hook_that_changes_the_training_is_an_error(monkeypatch):
    weights = iter([dict(w=torch.ones(2)), dict(w=torch.zeros(2))])
    monkeypatch.setattr(
        trainings, 'train_tiny', lambda *_, **__: next(weights))
    with pytest.raises(RuntimeError, match='weights: expected those of a '
                       'training without it, got others, w the first of 1'):
        rows(trainings.tns_hook)


@pytest.mark.core
def test_a_resume_that_forgets_is_an_error(monkeypatch):
    monkeypatch.setattr(SGD, 'load_state_dict', lambda *_: None)
    found = rows(trainings.resume, '')
    assert set(levels(found)) == {'error'}
    assert ': RuntimeError: weights: expected those of a training that was ' \
        'not stopped' in found[0][1]


def test_a_rank_that_fails_is_an_error():
    with pytest.raises(RuntimeError, match='^TypeError: .*abort'):
        trainings._start(os.abort, 1)


def test_ranks_that_differ_are_an_error(monkeypatch):
    def start(function, ranks, _, folder, device):
        for rank in range(ranks):
            torch.save(dict(BN=dict(w=torch.tensor(rank))),
                       f'{folder}/{rank}.pth')

    monkeypatch.setattr(trainings, '_start', start)
    with pytest.raises(RuntimeError, match='weights: expected those of rank 0 '
                       'in rank 1, got others, w'):
        rows(trainings.ddp)


def test_a_detector_without_operators_is_skipped(monkeypatch):
    monkeypatch.setattr(trainings, 'libraries', lambda: ['mmdet'])
    monkeypatch.setitem(sys.modules, 'mmcv.ops', None)
    with pytest.raises(Unavailable, match='no compiled operators .*mmcv.ops'):
        rows(trainings.detector)
    monkeypatch.setitem(sys.modules, 'mmcv.ops', SimpleNamespace(
        get_compiling_cuda_version=lambda: 'not available'))
    with pytest.raises(Unavailable, match='compiled for the CPU only'):
        rows(trainings.detector, 'cuda')


def times(fused):
    return {'plain': [1.] * len(fused), 'StepNet': fused,
            'StepNet, fused=False': [1.2] * len(fused)}


@pytest.mark.parametrize('fused, level, verdict', [
    ([1.1] * 7 + [1.14, 9.], 'ok', 'fused tail 1.10 of plain, without it '
     '1.20; 0.92 to 0.95 of the time without it in 9 rounds (batch 2, 96 px): '
     'faster, keep it'),
    ([1.1] * 4 + [1.3] * 5, 'ok', '; 0.92 to 1.08 of the time without it '
     'in 9 rounds (batch 2, 96 px): no sure difference, keep it; a machine '
     'without other work tells more'),
    ([1.3] * 8 + [1.1], 'warning', 'slower: switch it off: '
     'backbone.fused=False')])
def test_the_verdict(fused, level, verdict):
    row = cost.verdict(times(fused), torch.Size([2, 3, 96, 96]))
    assert row['level'] == level
    assert row['text'].endswith(verdict)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(cost, 'ROUNDS', 4)
    monkeypatch.setattr(cost, 'SIZES', dict(cpu=(2, 32)))
    monkeypatch.setattr(cost, 'NETWORKS', {
        name: dict(cfg, depth=18) for name, cfg in cost.NETWORKS.items()})


@pytest.mark.long
def test_the_four_networks_side_by_side(small):
    *networks, verdict = cost.cost('cpu')
    assert [row['text'].partition(':')[0] for row in networks] == list(
        cost.NETWORKS)
    assert networks[0]['of_plain'] == 1
    assert len(networks[0]['seconds_of_rounds']) == 4
    # The fused tail keeps no f.
    assert networks[2]['saved_megabytes'] < networks[3]['saved_megabytes']
    assert verdict['text'].startswith('fused tail ')


def test_no_compiler_is_no_error(monkeypatch):
    def fail(*_):
        raise RuntimeError('no gcc\nand more')

    monkeypatch.setattr(cost.torch, 'compile', fail)
    with pytest.raises(Unavailable, match=r'does not work here \(no gcc\)'):
        rows(cost.compiled, 'cuda')
    with pytest.raises(Unavailable, match='minutes on a CPU'):
        rows(cost.compiled)


@pytest.mark.long
def test_the_verdict_on_compiled_networks(small, monkeypatch, recwarn):
    # The kernels' check comes while the compiler is at work.
    monkeypatch.setattr(tail_check, '_checked', {})
    # The backend that generates no code.
    monkeypatch.setattr(
        cost.torch, 'compile', partial(torch.compile, backend='eager'))
    assert cost.compare_compiled('cpu')['text'].startswith('fused tail ')
    assert not [w for w in recwarn if 'backbone.fused' in str(w.message)]
