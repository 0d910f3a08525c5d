import functools
import os
import signal
import subprocess
from unittest.mock import Mock

import pytest
import torch
from forked import Forked
from mmengine.registry import HOOKS
from mmengine.visualization import Visualizer
from resume_run import (
    StopHook,
    assert_same,
    checkpoints,
    final_state,
    train,
    train_on_ranks,
)

from stepnet_mm.resume.preemption_hook import EXIT_PREEMPTED
from stepnet_mm.utils.job_signals import stop_listening


@HOOKS.register_module()
class SignalHook(StopHook):
    """Sends this process (of one rank, or of all), or its group, a signal.
    """
    priority = 'NORMAL'

    def __init__(self, where='before_train_iter', at=7, rank=None,
                 number='SIGUSR1', group=False):
        super().__init__(where, at)
        self.rank, self.number = rank, signal.Signals[number]
        self.group = group

    def act(self, runner):
        if self.group:  # from elsewhere, as a worker obeys its trainer
            subprocess.run(['kill', f'-{self.number}', '0'])
        elif self.rank in (None, runner.rank):
            os.kill(os.getpid(), self.number)


@pytest.fixture(autouse=True)
def signals_given_back():
    names = [signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM]
    before = [signal.getsignal(name) for name in names]
    yield
    # Of a preempted training: a later test's fork, taken for its child, would
    # have a thread that takes TERM, in about one of eight cases.
    stop_listening()
    for name, handler in zip(names, before):
        signal.signal(name, handler)


def hooks(**kwargs):
    return [dict(type='PreemptionHook'), dict(type='SignalHook', **kwargs)]


finish = functools.partial(train, interval=1000)


def leave(folder, **kwargs):
    with pytest.raises(SystemExit) as left:
        finish(folder, **kwargs)
    assert left.value.code == EXIT_PREEMPTED == 75


#: Of a hook that draws random numbers before each validation.
DRAWING = dict(before_val=lambda runner: torch.rand(()))


@pytest.mark.parametrize('settings, sent, saved', [
    pytest.param({}, dict(at=7), 7, marks=pytest.mark.core),
    ({}, dict(at=33, number='SIGTERM'), 33),
    # With EMA, whose weights are in the model at that moment.
    ({}, dict(at=2, where='before_val_iter'), 11),
    (dict(on=DRAWING), dict(at=2, where='before_val_iter'), 11),
    (dict(by_epoch=False), dict(at=5, where='before_val_iter',
                                number='SIGUSR2'), 16)])
def test_the_run_goes_on_as_if_nothing_had_been(tmp_path, whole, settings,
                                                sent, saved):
    leave(tmp_path, hooks=hooks(**sent), **settings)
    # The last iteration is saved as in any run, too.
    *others, last = checkpoints(tmp_path)
    assert last == f'preempted_iter_{saved}.pth'
    assert others == ['iter_33.pth'] * (saved == 33)
    resumed = finish(tmp_path, resume=True, **settings)
    assert_same(whole(**settings), final_state(resumed))


@pytest.mark.core
@pytest.mark.parametrize('sent', [
    dict(rank=1), dict(rank=0, where='before_val_iter', at=3)])
def test_the_signal_of_any_rank_is_enough(tmp_path, sent):
    """Also if the second rank has one batch less to validate."""
    loader = dict(
        dataset=dict(type='AugmentedDataset', size=5), batch_size=1,
        sampler=dict(type='DefaultSampler', shuffle=False, round_up=False))
    assert train_on_ranks(
        2, tmp_path, hooks=hooks(**sent), val_dataloader=loader
    ) == [EXIT_PREEMPTED, EXIT_PREEMPTED]
    saved = torch.load(tmp_path / 'preempted_iter_7.pth', weights_only=False)
    ranks = saved['training_state']['ranks']
    assert len(ranks) == 2 and ranks[1]['buffers']


@pytest.mark.parametrize('where, at, saved', [
    ('before_train_iter', 6, 8), ('before_val_iter', 2, 12)])
def test_gradients_that_wait_for_a_step_are_not_lost(tmp_path, where, at,
                                                     saved):
    optim = dict(optimizer=dict(type='SGD', lr=.01), accumulative_counts=4)
    leave(tmp_path, hooks=hooks(where=where, at=at), optim_wrapper=optim)
    assert checkpoints(tmp_path) == [f'preempted_iter_{saved}.pth']


@pytest.mark.parametrize('option', ['--resume', '--resume PATH', ''])
def test_a_job_is_requeued_if_its_command_resumes(tmp_path, monkeypatch,
                                                  option):
    """When all is written: Slurm ends the ranks as soon as it is requeued.

    Also if a visualizer's server is gone.
    """
    there = []
    monkeypatch.setattr(Visualizer, 'close', Mock(side_effect=ConnectionError))
    monkeypatch.setattr(
        'stepnet_mm.resume.preemption_hook.requeue',
        lambda most, say: there.append({*os.listdir(tmp_path / 'a')}))
    settings = dict(resume=bool(option))
    if 'PATH' in option:
        leave(tmp_path / 'b', hooks=hooks(at=3))
        settings['load_from'] = str(tmp_path / 'b/preempted_iter_3.pth')
    leave(tmp_path / 'a', hooks=hooks(), **settings)
    assert len(there) == (option == '--resume')
    assert all({'preempted_iter_7.pth', 'last_checkpoint'} <= names
               for names in there)


@pytest.mark.core
def test_optimizer_and_schedulers_are_saved_in_any_case(tmp_path, whole):
    """Each of its checkpoints goes when the next one is complete."""
    settings = dict(checkpoint=dict(save_optimizer=False,
                                    save_param_scheduler=False))
    leave(tmp_path, hooks=hooks(at=3), **settings)
    leave(tmp_path, resume=True, hooks=hooks(at=4), **settings)
    assert checkpoints(tmp_path) == ['preempted_iter_7.pth']
    assert_same(whole(), final_state(
        finish(tmp_path, resume=True, **settings)))
    assert checkpoints(tmp_path) == ['iter_33.pth']


def test_handlers_are_given_back(tmp_path):
    """By a training that fails too, after which a notebook goes on."""
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    for stop in None, 3:
        finish(tmp_path / str(stop), stop, hooks=[dict(type='PreemptionHook')])
        assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN


def test_workers_of_the_loader_get_the_signal_too(tmp_path):
    """As under Slurm; they load more, for the save waits for an update."""
    optim = dict(optimizer=dict(type='SGD', lr=.01), accumulative_counts=20)
    with Forked(tmp_path, finish, tmp_path / 'w', workers=2, hooks=hooks(
            group=True, number='SIGTERM'), optim_wrapper=optim) as process:
        assert process.wait(100) == EXIT_PREEMPTED, process.printed('stderr')
    assert checkpoints(tmp_path / 'w') == ['preempted_iter_20.pth']


def test_without_its_partners(tmp_path):
    with pytest.raises(ValueError, match='PreemptionHook: expected train_cfg'):
        finish(tmp_path, hooks=[dict(type='PreemptionHook')],
               checkpoint=dict(type='CheckpointHook'))
