import os
import re

import pytest
import torch
from mmengine.hooks import Hook
from mmengine.optim import OptimWrapperDict
from mmengine.registry import HOOKS
from mmengine.structures import BaseDataElement
from resume_run import resume_runner, train_on_ranks, warnings_of

from stepnet_mm.utils.files import DIVERGED


@HOOKS.register_module()
class PoisonHook(Hook):
    """Puts a NaN into the images of some iterations, on one rank."""
    priority = 'LOWEST'

    def __init__(self, iterations, rank=0, value=float('nan')):
        self.iterations, self.rank, self.value = iterations, rank, value
        self.before = {}

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        self.before[runner.iter] = state(runner)
        if runner.iter in self.iterations and runner.rank == self.rank:
            data_batch['inputs'][0][0] = self.value


@HOOKS.register_module()
class PathsHook(Hook):
    """Gives the samples of a batch paths, as mmdet's and mmpretrain's have."""

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        samples = [
            BaseDataElement(metainfo=dict(
                img_path=f'rank{runner.rank}/iter{runner.iter}/{i}.jpg'))
            for i in range(2)]
        data_batch['data_samples'] = dict(sup=samples, other=[None])


def state(runner):
    return {k: v.clone() for k, v in runner.model.state_dict().items()}


def runner_with(folder, *iterations, poison=(), **kwargs):
    return resume_runner(folder, interval=1000, hooks=[
        dict(type='NonFiniteLossHook', **kwargs),
        dict(type='PoisonHook', iterations=iterations, **dict(poison))])


def hook_of(runner, name):
    return next(h for h in runner.hooks if type(h).__name__ == name)


def equal(a, b):
    return all(torch.equal(a[k], b[k]) for k in a)


def test_training_stops_before_the_step(tmp_path):
    """A note says why, until the next start, which meets the same batch."""
    runner = runner_with(tmp_path, 14, poison=dict(value=float('inf')))
    batches = spy(runner)
    path = tmp_path / 'nonfinite_iter_14.pth'
    with pytest.raises(FloatingPointError, match=r'loss: expected a finite .* '
                       rf'got nan on rank 0 in iteration 15 .* is {path}\)'
                       ) as stopped:
        runner.train()
    assert (tmp_path / DIVERGED).read_text() == f'{stopped.value}\n'
    before = hook_of(runner, 'PoisonHook').before[14]
    assert equal(before, state(runner))
    saved = torch.load(path, weights_only=False)
    ema = {k[7:]: v for k, v in saved['ema_state_dict'].items()}
    assert equal({k: ema[k] for k in before}, before)  # EMA has swapped them
    assert saved['meta']['iter'] == 14
    assert saved['training_state']['batches'] == 3
    assert not os.path.exists(tmp_path / 'last_checkpoint')
    again = runner_with(tmp_path)
    again._resume, again._load_from = True, str(path)
    seen = spy(again)
    again.train()
    assert not (tmp_path / DIVERGED).exists()
    first, second = batches[-1]['inputs'], seen[0]['inputs']
    first[0][0] = second[0][0]  # what was poisoned
    assert all(torch.equal(a, b) for a, b in zip(first, second))
    assert equal(before, hook_of(again, 'PoisonHook').before[14])


def spy(runner):
    """The batches of a training."""
    hook, seen = Hook(), []
    hook.before_train_iter = lambda runner, batch_idx, data_batch: (
        seen.append(data_batch))
    runner.register_hook(hook, priority='LOWEST')
    return seen


@pytest.mark.core
def test_a_skipped_batch_leaves_no_trace(tmp_path):
    runner = runner_with(tmp_path, 4, 14, action='skip')
    runner.register_hook(PathsHook())
    lines = warnings_of(runner)
    runner.train()
    before = hook_of(runner, 'PoisonHook').before
    assert runner.iter == 33
    for n in (4, 14):
        assert equal(before[n], before[n + 1])
        assert not equal(before[n + 1], before[n + 2])
    assert all(v.isfinite().all() for v in runner.model.state_dict().values())
    assert [line for line in lines if 'iteration 5 ' in line]
    named = [re.findall(r'[^ ]+\.jpg', line) for line in lines]
    assert [*filter(None, named)] == [['rank0/iter4/0.jpg',
                                      'rank0/iter4/1.jpg']]
    assert [line for line in lines if 'skipped its update, 2 so far' in line]
    assert [n for n in os.listdir(tmp_path) if 'nonfinite' in n] == [
        'nonfinite_iter_4.pth']
    assert not (tmp_path / DIVERGED).exists()


def test_too_many_in_a_row(tmp_path):
    runner = runner_with(tmp_path, 1, 2, 4, 5, 6, 7, action='skip',
                         max_skips=3)
    with pytest.raises(FloatingPointError, match='4 times in a row'):
        runner.train()
    assert runner.iter == 7
    assert '4 times in a row' in (tmp_path / DIVERGED).read_text()


def test_several_optimizers_are_left_to_the_model(tmp_path):
    runner = runner_with(tmp_path)
    lines = warnings_of(runner)
    runner.optim_wrapper = OptimWrapperDict()
    hook = hook_of(runner, 'NonFiniteLossHook')
    hook.before_train(runner)
    assert 'several optimizers' in lines[0] and not hook._replaced


@pytest.mark.core
def test_it_changes_no_bit_of_a_finite_training(tmp_path):
    finals = []
    for name, hooks in dict(a=[], b=[dict(type='NonFiniteLossHook')]).items():
        runner = resume_runner(tmp_path / name, hooks=hooks, interval=1000)
        finals.append(runner.train().state_dict())
        assert 'update_params' not in vars(runner.optim_wrapper)
    assert equal(*finals)


@pytest.mark.parametrize('action', ['stop', 'skip'])
def test_one_rank_is_enough(tmp_path, action):
    settings = dict(log_level='WARNING', hooks=[
        dict(type='NonFiniteLossHook', action=action), dict(type='PathsHook'),
        dict(type='PoisonHook', iterations=[3], rank=1)])
    ends = train_on_ranks(2, tmp_path, **settings)
    if action == 'stop':
        assert all('in iteration 4 (' in end for end in ends)
    else:
        weights = [{k: v for k, v in end['model'].items()
                    if 'running' not in k} for end in ends]
        assert equal(*weights)
        assert all(v.isfinite().all() for v in weights[0].values())
    assert (tmp_path / 'nonfinite_iter_3.pth').exists()
    logged = ''.join(path.read_text() for path in tmp_path.glob('*/*.log'))
    assert re.findall(r'[^ ]+\.jpg', logged) == ['rank1/iter3/0.jpg',
                                                 'rank1/iter3/1.jpg']


@pytest.mark.parametrize('key, settings', [
    ('NonFiniteLossHook.action', dict(action='ignore')),
    ('NonFiniteLossHook.max_skips', dict(max_skips=-1)),
    ('accumulative_counts=2', dict(action='skip'))])
def test_wrong_arguments(tmp_path, key, settings):
    with pytest.raises(ValueError, match=key):
        resume_runner(
            tmp_path, hooks=[dict(type='NonFiniteLossHook', **settings)],
            optim_wrapper=dict(optimizer=dict(type='SGD', lr=.1),
                               accumulative_counts=2)).train()
