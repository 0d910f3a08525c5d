"""Each check of a device finds what it is there for."""
import os
import sys
from dataclasses import replace

import pytest
import torch
from torch.optim import SGD

from stepnet_mm.doctor import environment, operations, process
from stepnet_mm.steps import SEAttention


def rows(check, device='cpu'):
    return [(row['level'], row['text']) for row in check(device)]


@pytest.mark.core
def test_a_kernel_with_a_wrong_number_is_named(monkeypatch):
    right = operations.check_kernels('cpu', [torch.float32])
    wrong = [replace(right[0], ok=False, reason='7 times off'), *right[1:]]
    results = iter([wrong, right])
    monkeypatch.setattr(operations, 'check_kernels', lambda *_: next(results))
    (level, text), *others = rows(operations.kernels)
    assert level == 'error' and '7 times off' in text
    assert text.startswith(f'{right[0].kernel}, torch.float32, ')
    assert [level for level, _ in others] == ['ok'] * 7


@pytest.mark.parametrize('error, level', [
    (.02, 'error'), (float('nan'), 'error'), (2e-6, 'ok')])
def test_a_fused_tail_that_differs_is_an_error(monkeypatch, error, level):
    def run(device, dtype, layout, fused):
        off = error if fused else 1e-6 * (dtype != torch.float64)
        return [torch.ones(9) + off] * 2

    monkeypatch.setattr(operations, '_run', run)
    assert [level for level, _ in rows(operations.backbone)] == [level] * 2


def test_a_step_that_is_not_finite_is_named(monkeypatch):
    monkeypatch.setattr(
        SEAttention, 'forward', lambda self, x, f: f * float('nan'))
    found = {text.partition(':')[0]: level
             for level, text in rows(operations.steps)}
    assert found.pop('SEAttention') == 'error'
    assert set(found.values()) <= {'ok', 'skipped'} and len(found) > 10


@pytest.mark.core
def test_a_resume_that_forgets_is_an_error(monkeypatch):
    monkeypatch.setattr(SGD, 'load_state_dict', lambda *_: None)
    monkeypatch.setattr(operations, 'libraries', lambda: ['mmpretrain'])
    (level, text), = rows(operations.resume, '')
    assert level == 'error' and 'a training that was not stopped' in text


def test_ranks_that_differ_are_an_error(monkeypatch):
    monkeypatch.setattr(operations, '_train', lambda *_, **__: dict(
        weight=torch.tensor(int(os.environ['LOCAL_RANK']))))
    (level, text), = rows(lambda device: process.attempt(
        'ddp', operations.ddp, device))
    assert level == 'error'
    assert text.startswith('ddp: ProcessRaisedException: RuntimeError: '
                           'weights: expected those of rank 0, got')


@pytest.mark.parametrize('absent, level', [
    (None, 'error'), ('mmdet', 'skipped')])
def test_mmcv_without_operators(monkeypatch, absent, level):
    monkeypatch.setattr(
        environment, 'find_spec', lambda name: name != absent or None)
    monkeypatch.setitem(sys.modules, 'mmcv.ops', None)
    (found, text), = rows(environment.operators, '')
    assert found == level and 'mmcv.ops' in text


@pytest.mark.parametrize('fused, level', [
    ([1.1] * 4 + [1.3] * 4 + [9.], 'ok'), ([1.3] * 8 + [1.1], 'warning')])
def test_the_verdict(fused, level):
    assert operations.verdict(fused, [1.2] * 9)['level'] == level
