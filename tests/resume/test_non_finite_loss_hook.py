import functools
import os
import re

import pytest
import torch
from mmengine.hooks import Hook
from mmengine.optim import OptimWrapper
from mmengine.optim.optimizer import amp_optimizer_wrapper
from mmengine.registry import HOOKS, OPTIM_WRAPPERS
from mmengine.structures import BaseDataElement
from resume_run import (
    assert_same,
    final_state,
    resume_runner,
    train,
    train_on_ranks,
    warnings_of,
)

from stepnet_mm.utils.files import DIVERGED


@HOOKS.register_module()
class PoisonHook(Hook):
    """Puts a NaN into the images of some iterations, on one rank.

    Its samples have paths, as those of mmdet and mmpretrain.
    """
    priority = 'LOWEST'

    def __init__(self, iterations, rank=0, value=float('nan')):
        self.iterations, self.rank, self.value = iterations, rank, value
        self.before, self.batches = {}, {}

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        self.before[runner.iter] = {
            k: v.clone() for k, v in runner.model.state_dict().items()}
        self.batches[runner.iter] = torch.stack(data_batch['inputs'])
        path = f'rank{runner.rank}/iter{runner.iter}.jpg'
        data_batch['data_samples'] = dict(other=[None], sup=[
            BaseDataElement(metainfo=dict(img_path=path))])
        if runner.iter in self.iterations and runner.rank == self.rank:
            data_batch['inputs'][0][0] = self.value


@OPTIM_WRAPPERS.register_module()
class OwnWrapper(OptimWrapper):
    """Steps without step."""

    def update_params(self, loss):
        self.zero_grad()
        self.backward(loss)
        self.optimizer.step()


def test_an_update_of_the_users_own_is_left_alone(tmp_path):
    runner = runner_with(tmp_path, 5, resume=dict(optim_wrapper=dict(
        type='OwnWrapper', optimizer=dict(type='SGD', lr=.1))))
    lines = warnings_of(runner)
    runner.train()
    assert runner.iter == 33
    assert any('OwnWrapper has its own' in line for line in lines)


def runner_with(folder, *iterations, poison=(), resume=(), **kwargs):
    return resume_runner(folder, interval=1000, hooks=[
        dict(type='NonFiniteLossHook', **kwargs),
        dict(type='PoisonHook', iterations=iterations, **dict(poison))],
        **dict(resume))


def hook_of(runner, name):
    return next(h for h in runner.hooks if type(h).__name__ == name)


def equal(a, b):
    return all(torch.equal(a[k], b[k]) for k in a)


def test_training_stops_before_the_step(tmp_path):
    """A note says why, until the next start, which meets the same batch."""
    runner = runner_with(tmp_path, 14, poison=dict(value=float('inf')))
    path = tmp_path / 'nonfinite_iter_14.pth'
    with pytest.raises(FloatingPointError, match='loss: expected a finite .* '
                       f'on rank 0 in iteration 15 .* is {path}') as stopped:
        runner.train()
    assert (tmp_path / DIVERGED).read_text() == f'{stopped.value}\n'
    assert 'in a row' not in str(stopped.value)
    first = hook_of(runner, 'PoisonHook')
    assert equal(first.before[14], runner.model.state_dict())
    saved = torch.load(path, weights_only=False)
    assert saved['meta']['iter'] == 14
    assert saved['training_state']['batches'] == 3
    assert not os.path.exists(tmp_path / 'last_checkpoint')
    again = runner_with(
        tmp_path, resume=dict(resume=True, load_from=str(path)))
    again.train()
    assert not (tmp_path / DIVERGED).exists()
    second = hook_of(again, 'PoisonHook')
    assert torch.equal(first.batches[14], second.batches[14])
    assert equal(first.before[14], second.before[14])


@pytest.mark.core
def test_a_skipped_batch_leaves_no_trace(tmp_path):
    runner = runner_with(tmp_path, 4, 14, action='skip')
    lines = warnings_of(runner)
    runner.train()
    before = hook_of(runner, 'PoisonHook').before
    assert runner.iter == 33
    for n in (4, 14):
        assert equal(before[n], before[n + 1])
        assert not equal(before[n + 1], before[n + 2])
    assert all(v.isfinite().all() for v in runner.model.state_dict().values())
    assert re.findall(r'[^ ]+\.jpg', ' '.join(lines)) == ['rank0/iter4.jpg']
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


@pytest.mark.core
def test_it_changes_no_bit_of_a_finite_training(tmp_path, whole):
    runner = train(tmp_path, hooks=[dict(type='NonFiniteLossHook')])
    assert_same(whole(), final_state(runner))
    assert 'update_params' not in vars(runner.optim_wrapper)


@pytest.mark.parametrize('action', ['stop', 'skip'])
def test_one_rank_is_enough(tmp_path, action):
    settings = dict(log_level='WARNING', hooks=[
        dict(type='NonFiniteLossHook', action=action),
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
    assert re.findall(r'[^ ]+\.jpg', logged) == ['rank1/iter3.jpg']


@pytest.fixture
def amp(monkeypatch):
    """The optimizer wrapper of mixed precision, on a CPU."""
    monkeypatch.setattr(amp_optimizer_wrapper, 'is_cuda_available',
                        lambda: True)
    monkeypatch.setattr(amp_optimizer_wrapper, 'GradScaler',
                        functools.partial(torch.amp.GradScaler, 'cpu'))
    return dict(type='AmpOptimWrapper', dtype='bfloat16')


@pytest.mark.since_torch('2.3', 'a loss scale on a CPU')
@pytest.mark.parametrize('mixed', [False, True])
def test_under_accumulation_the_whole_update_is_left_out(tmp_path, amp, mixed):
    """Whether its first batch or its last one has the loss of inf."""
    runner = runner_with(
        tmp_path, 4, 13, 20, 21, poison=dict(value=float('inf')), max_skips=2,
        action='stop' if mixed else 'skip', resume=dict(optim_wrapper=dict(
            amp if mixed else {}, optimizer=dict(type='Adam', lr=.01),
            accumulative_counts=2)))
    runner.train()
    weights = {n: [v for k, v in state.items() if 'running' not in k
                   and 'num' not in k]
               for n, state in hook_of(runner, 'PoisonHook').before.items()}
    same = {n for n in range(0, 32, 2)
            if all(map(torch.equal, weights[n], weights[n + 2]))}
    assert same == {4, 12, 20} and runner.iter == 33
    assert hook_of(runner, 'NonFiniteLossHook').skipped == 4
    assert all(v.isfinite().all() for v in runner.model.state_dict().values())


@pytest.mark.core
@pytest.mark.since_torch('2.3', 'a loss scale on a CPU')
def test_under_amp_a_batch_is_skipped_and_the_loss_scale_resumed(
        tmp_path, amp):
    def run(folder, iterations, **kwargs):
        runner = runner_with(tmp_path / folder, 1, resume=dict(
            kwargs, by_epoch=False, val_cfg=None, val_dataloader=None,
            val_evaluator=None, train_cfg=dict(
                type='ResumableIterBasedTrainLoop', max_iters=iterations),
            optim_wrapper=dict(
                amp, loss_scale=dict(init_scale=1024., growth_interval=2),
                optimizer=dict(type='Adam', lr=.01))))
        runner.train()
        return runner

    whole = run('whole', 6)
    before = hook_of(whole, 'PoisonHook').before
    assert equal(before[1], before[2]) and not equal(before[2], before[3])
    assert whole.optim_wrapper.loss_scaler.get_scale() > 2048
    run('parts', 3)
    assert_same(final_state(whole), final_state(run('parts', 6, resume=True)))
