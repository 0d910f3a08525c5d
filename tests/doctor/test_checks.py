"""Each check of a device finds what it is there for."""
import pytest
import torch
from torch.optim import SGD

from stepnet_mm.doctor import trials


def rows(check, device='cpu'):
    return [(row['level'], row['text']) for row in check(device)]


@pytest.mark.core
def test_a_kernel_with_a_wrong_number_is_named(monkeypatch):
    right = trials.check_kernels('cpu', [torch.float32])
    wrong = [right[0]._replace(ok=False, reason='7 times off'), *right[1:]]
    results = iter([wrong, right])
    monkeypatch.setattr(trials, 'check_kernels', lambda *_: next(results))
    (level, text), *others = rows(trials.kernels)
    assert level == 'error' and '7 times off' in text
    assert text.startswith(f'{right[0].kernel}, torch.float32, ')
    assert [level for level, _ in others] == ['ok'] * 7


@pytest.mark.core
def test_a_resume_that_forgets_is_an_error(monkeypatch):
    monkeypatch.setattr(SGD, 'load_state_dict', lambda *_: None)
    monkeypatch.setattr(trials, 'libraries', lambda: ['mmpretrain'])
    (level, text), = rows(trials.resume, '')
    assert level == 'error' and 'a training that was not stopped' in text
