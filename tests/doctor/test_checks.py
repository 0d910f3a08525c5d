"""Each check finds what it is there for."""
import sys
from dataclasses import replace

import pytest
import torch
from torch.multiprocessing import ProcessRaisedException
from torch.optim import SGD

from stepnet_mm.doctor import cost, numerics, trainings
from stepnet_mm.doctor.report import Unavailable
from stepnet_mm.steps import SEAttention


def rows(check, device='cpu'):
    return [(row['level'], row['text']) for row in check(device)]


@pytest.mark.core
def test_a_kernel_with_a_wrong_number_is_named(monkeypatch):
    right = numerics.check_kernels('cpu', [torch.float32])
    wrong = [replace(right[0], ok=False, reason='7 times off'), *right[1:]]
    results = iter([wrong, right])
    monkeypatch.setattr(numerics, 'check_kernels', lambda *_: next(results))
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
    assert [level for level, _ in found] == [level] * 2
    assert found[0][1].startswith('float32 contiguous: off float64 by ')


def test_a_step_that_is_not_finite_is_named(monkeypatch):
    monkeypatch.setattr(SEAttention, 'forward',
                        lambda self, x, f: f * float('nan'))
    found = {text.partition(':')[0]: level
             for level, text in rows(numerics.steps)}
    assert found.pop('SEAttention') == 'error'
    assert set(found.values()) <= {'ok', 'skipped'} and len(found) > 10


@pytest.mark.core
def test_a_resume_that_forgets_is_an_error(monkeypatch):
    monkeypatch.setattr(SGD, 'load_state_dict', lambda *_: None)
    monkeypatch.setattr(trainings, 'libraries', lambda: ['mmpretrain'])
    (level, text), = rows(trainings.resume, '')
    assert level == 'error'
    assert 'expected those of a training that was not stopped' in text


def test_a_rank_that_fails_is_an_error(monkeypatch):
    def start(*_, **__):
        raise ProcessRaisedException('a traceback\nTypeError: boom', 0, 1)

    monkeypatch.setattr(trainings.multiprocessing, 'start_processes', start)
    with pytest.raises(RuntimeError, match='^TypeError: boom$'):
        rows(trainings.ddp)


def test_ranks_that_differ_are_an_error(monkeypatch):
    def start(_, args, ranks, start_method):
        folder = args[1]
        for rank in range(ranks):
            torch.save(dict(BN=dict(w=torch.tensor(rank))),
                       f'{folder}/{rank}.pth')

    monkeypatch.setattr(trainings.multiprocessing, 'start_processes', start)
    with pytest.raises(RuntimeError, match='weights: expected those of rank 0 '
                       'in rank 1, got others, w'):
        rows(trainings.ddp)


def test_a_detector_without_operators_is_skipped(monkeypatch):
    monkeypatch.setattr(trainings, 'libraries', lambda: ['mmdet'])
    monkeypatch.setitem(sys.modules, 'mmcv.ops', None)
    with pytest.raises(Unavailable, match='no compiled operators .*mmcv.ops'):
        rows(trainings.detector)


@pytest.mark.parametrize('fused, level, verdict', [
    ([1.1] * 7 + [1.14, 9.], 'ok', 'the fused tail takes 0.92 to 0.95 of the '
     'time without it (batch 2, 96 px): keep it'),
    ([1.1] * 4 + [1.3] * 5, 'ok', 'no sure difference, keep it'),
    ([1.3] * 8 + [1.1], 'warning', 'switch it off: backbone.fused=False')])
def test_the_verdict(fused, level, verdict):
    times = dict(zip((cost.PLAIN, cost.STEPNET, cost.UNFUSED),
                     ([1.] * 9, fused, [1.2] * 9)))
    row = cost.verdict(times, torch.Size([2, 3, 96, 96]))
    assert row['level'] == level
    assert row['text'].endswith(verdict)
