import os
import signal
import time

import pytest
import torch
from forked import Forked
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from resume_run import assert_same, final_state, resume_runner, train_on_ranks

from stepnet_mm.resume import AtomicLocalBackend, PreemptionHook
from stepnet_mm.resume.preemption_hook import EXIT_PREEMPTED


@HOOKS.register_module()
class SignalHook(Hook):
    """Sends this process (of one rank, or of all) a signal."""

    def __init__(self, where='before_train_iter', at=7, rank=None,
                 number='SIGUSR1'):
        self.where, self.at, self.count = where, at, 0
        self.rank, self.number = rank, signal.Signals[number]

    def _maybe(self, runner, where):
        self.count += where == self.where
        if (where == self.where and self.count == self.at
                and self.rank in (None, runner.rank)):
            os.kill(os.getpid(), self.number)

    def before_train_iter(self, runner, *args, **kwargs):
        self._maybe(runner, 'before_train_iter')

    def before_val_iter(self, runner, *args, **kwargs):
        self._maybe(runner, 'before_val_iter')


@pytest.fixture(autouse=True)
def signals_given_back():
    names = [signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM]
    before = [signal.getsignal(name) for name in names]
    yield
    for name, handler in zip(names, before):
        signal.signal(name, handler)


def hooks(**kwargs):
    return [dict(type='PreemptionHook'), dict(type='SignalHook', **kwargs)]


def leave(folder, interval=1000, hooks=(), **kwargs):
    runner = resume_runner(folder, interval=interval, hooks=hooks, **kwargs)
    with pytest.raises(SystemExit) as left:
        runner.train()
    assert left.value.code == EXIT_PREEMPTED == 75
    return runner


def finish(folder, **kwargs):
    runner = resume_runner(folder, interval=1000, **kwargs)
    runner.train()
    return runner


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
    return {by_epoch: final_state(finish(
        tmp_path_factory.mktemp('whole'), by_epoch=by_epoch))
        for by_epoch in (True, False)}


@pytest.mark.parametrize('number, by_epoch, at', [
    pytest.param('SIGUSR1', True, 7, marks=pytest.mark.core),
    ('SIGUSR2', False, 7), ('SIGTERM', True, 11), ('SIGTERM', True, 33)])
def test_the_run_goes_on_as_if_nothing_had_been(
        tmp_path, whole, number, by_epoch, at):
    """In an epoch, and at the end of one."""
    leave(tmp_path, by_epoch=by_epoch, hooks=hooks(number=number, at=at))
    # The last iteration is saved as in any run, too.
    assert {n for n in os.listdir(tmp_path) if 'iter' in n} - {
        'iter_33.pth'} == {f'preempted_iter_{at}.pth'}
    resumed = finish(tmp_path, by_epoch=by_epoch, resume=True)
    assert_same(whole[by_epoch], final_state(resumed))


@pytest.mark.parametrize('by_epoch, at', [(True, 2), (False, 5)])
def test_in_validation(tmp_path, whole, by_epoch, at):
    """With EMA, whose weights are in the model at that moment."""
    leave(tmp_path, by_epoch=by_epoch,
          hooks=hooks(where='before_val_iter', at=at))
    resumed = finish(tmp_path, by_epoch=by_epoch, resume=True)
    assert_same(whole[by_epoch], final_state(resumed))


@pytest.mark.parametrize('at', [2, 5])
def test_in_a_validation_with_and_without_averaged_weights(tmp_path, at):
    """mmpretrain's EMAHook validates twice, the second time in a hook."""
    pytest.importorskip('mmpretrain')
    settings = dict(ema=dict(type='mmpretrain.EMAHook',
                             evaluate_on_origin=True))
    whole = finish(tmp_path / 'whole', **settings)
    leave(tmp_path / 'b', hooks=hooks(where='before_val_iter', at=at),
          **settings)
    resumed = finish(tmp_path / 'b', resume=True, **settings)
    whole, resumed = final_state(whole), final_state(resumed)
    # The first of the two passes was logged and is run again.
    del whole['scalars'], resumed['scalars']
    assert_same(whole, resumed)


@pytest.mark.core
def test_its_checkpoint_goes_when_the_next_one_is_complete(tmp_path):
    leave(tmp_path, hooks=hooks(at=3))
    leave(tmp_path, resume=True, hooks=hooks(at=3))
    assert [n for n in os.listdir(tmp_path) if n.endswith('.pth')] == [
        'preempted_iter_6.pth'
    ]
    finish(tmp_path, resume=True)
    assert [n for n in os.listdir(tmp_path) if n.endswith('.pth')] == [
        'iter_33.pth'
    ]


@pytest.mark.core
def test_the_signal_of_any_rank_is_enough(tmp_path):
    whole = train_on_ranks(2, tmp_path / 'whole')
    left = train_on_ranks(2, tmp_path / 'b', hooks=hooks(rank=1))
    assert left == [EXIT_PREEMPTED, EXIT_PREEMPTED]
    resumed = train_on_ranks(2, tmp_path / 'b', resume=True)
    del whole[1]['scalars'], resumed[1]['scalars']
    assert_same(whole, resumed)


def test_ranks_with_unequal_shares_of_the_validation(tmp_path):
    """The second rank has one batch less, and gets no signal."""
    loader = dict(
        dataset=dict(type='AugmentedDataset', size=5),
        sampler=dict(type='DefaultSampler', shuffle=False, round_up=False),
        batch_size=1)
    left = train_on_ranks(
        2, tmp_path, val_dataloader=loader,
        hooks=hooks(rank=0, where='before_val_iter', at=3))
    assert left == [EXIT_PREEMPTED, EXIT_PREEMPTED]


@pytest.mark.parametrize('where, at, saved', [
    ('before_train_iter', 6, 8), ('before_val_iter', 2, 12)])
def test_gradients_that_wait_for_a_step_are_not_lost(tmp_path, where, at,
                                                     saved):
    optim = dict(optimizer=dict(type='SGD', lr=.01), accumulative_counts=4)
    leave(tmp_path, hooks=hooks(where=where, at=at), optim_wrapper=optim)
    assert (tmp_path / f'preempted_iter_{saved}.pth').exists()


def test_all_is_written_before_the_job_is_requeued(tmp_path, monkeypatch):
    """Slurm ends the ranks as soon as it is."""
    done = []
    monkeypatch.setattr(
        'stepnet_mm.resume.preemption_hook.requeue',
        lambda most, say: done.append(
            (most, os.listdir(tmp_path), list(done))))
    runner = resume_runner(tmp_path, interval=1000, hooks=hooks(),
                           resume=True)
    close = runner.visualizer.close
    monkeypatch.setattr(runner.visualizer, 'close',
                        lambda: (done.append('closed'), close()))
    monkeypatch.setattr(
        runner.logger, 'warning', lambda text: text.startswith(
            'PreemptionHook') and done.append(text))
    with pytest.raises(SystemExit):
        runner.train()
    most, files, (told, closed, saved) = done[-1]
    assert most == 20 and 'told to stop' in told and closed == 'closed'
    assert f'preempted_iter_7.pth; leaving with exit code {EXIT_PREEMPTED}' \
        in saved
    assert {'preempted_iter_7.pth', 'last_checkpoint'} <= set(files)


@pytest.mark.parametrize('with_path', [False, True])
def test_a_command_that_would_begin_anew_is_not_requeued(
        tmp_path, monkeypatch, with_path):
    monkeypatch.setattr('stepnet_mm.resume.preemption_hook.requeue',
                        lambda *_: pytest.fail('requeued'))
    settings = {}
    if with_path:
        finish(tmp_path / 'earlier')
        settings = dict(
            resume=True, load_from=str(tmp_path / 'earlier/iter_33.pth'),
            train_cfg=dict(type='ResumableEpochBasedTrainLoop', max_epochs=6))
    runner = resume_runner(tmp_path / 'a', interval=1000, hooks=hooks(),
                           **settings)
    said = []
    monkeypatch.setattr(runner.logger, 'warning', said.append)
    with pytest.raises(SystemExit):
        runner.train()
    assert (tmp_path / 'a/last_checkpoint').exists()
    assert 'not requeued, since the same command would not' in said[-1]


@pytest.mark.core
def test_optimizer_and_schedulers_are_saved_in_any_case(tmp_path, whole):
    settings = dict(checkpoint=dict(save_optimizer=False,
                                    save_param_scheduler=False))
    leave(tmp_path, hooks=hooks(), **settings)
    assert_same(whole[True], final_state(
        finish(tmp_path, resume=True, **settings)))


def test_handlers_are_given_back(tmp_path):
    def own(number, frame):
        """The caller's, which is not the default."""

    signal.signal(signal.SIGUSR1, own)
    finish(tmp_path, hooks=[dict(type='PreemptionHook')])
    assert signal.getsignal(signal.SIGUSR1) is own
    assert signal.set_wakeup_fd(-1) == -1
    # Of a training that fails too, after which a notebook goes on.
    runner = resume_runner(tmp_path / 'failed', interval=1000, hooks=[
        dict(type='PreemptionHook')])
    runner.model.train_step = None
    with pytest.raises(TypeError):
        runner.train()
    assert signal.getsignal(signal.SIGUSR1) is own
    assert signal.set_wakeup_fd(-1) == -1


def save_slowly(folder, **arguments):
    """A signal, and then a save that takes a minute."""
    put = AtomicLocalBackend.put

    def slow(self, obj, path):
        if 'preempted' in str(path):
            print('saving')
            time.sleep(60)
        put(self, obj, path)

    AtomicLocalBackend.put = slow
    resume_runner(folder, interval=2, hooks=[
        dict(type='PreemptionHook', **arguments), dict(type='SignalHook')
    ]).train()


class Waiting(Hook):
    """Waits outside of Python."""

    def after_train_iter(self, runner, *args, **kwargs):
        if runner.iter == 5:
            print('waiting')
            torch.futures.Future().wait()


def train_with(hook, folder, **kwargs):
    resume_runner(folder, hooks=[PreemptionHook(), hook], **kwargs).train()


def test_a_second_signal_ends_a_wait_in_which_no_python_runs(tmp_path):
    with Forked(tmp_path, train_with, Waiting(), tmp_path / 'w') as process:
        process.until_it_prints('waiting')
        process.signal(signal.SIGTERM)  # within the same second: one
        time.sleep(1.5)
        assert process.poll() is None
        process.signal(signal.SIGTERM)
        assert process.wait(10) == 128 + signal.SIGTERM


def test_a_save_that_does_not_finish(tmp_path):
    with Forked(tmp_path, save_slowly, tmp_path / 'w',
                save_timeout=1) as process:
        process.until_it_prints('saving')
        assert process.wait(60) == 1
        assert 'took longer than 1 s (save_timeout)' in process.printed(
            'stderr')
    assert (tmp_path / 'w/last_checkpoint').read_text().endswith('iter_6.pth')


class Telling(Hook):
    """Says where it is, slowly enough for a signal."""

    def after_train_iter(self, runner, *args, **kwargs):
        print('iteration', runner.iter)
        time.sleep(.3)


def test_workers_of_the_loader_get_the_signal_too(tmp_path):
    """As under Slurm, which signals every process of a job."""
    with Forked(tmp_path, train_with, Telling(), tmp_path / 'w', workers=2,
                interval=1000) as process:
        process.until_it_prints('iteration 5')
        process.signal(signal.SIGTERM, group=True)
        assert process.wait(120) == EXIT_PREEMPTED, process.printed('stderr')
    assert list((tmp_path / 'w').glob('preempted_iter_*.pth'))


@pytest.mark.parametrize('wrong', ['SIGUSR1', ['SIGKILL'], ['USR1']])
def test_wrong_signals(wrong):
    with pytest.raises(ValueError, match='PreemptionHook.signals'):
        PreemptionHook(signals=wrong)


def test_without_its_partners(tmp_path):
    hook = [dict(type='PreemptionHook')]
    with pytest.raises(ValueError, match="type='AtomicCheckpointHook'"):
        finish(tmp_path, hooks=hook, checkpoint=dict(type='CheckpointHook'))
    with pytest.raises(ValueError, match='train_cfg.type'):
        finish(tmp_path, hooks=hook, train_cfg=dict(
            by_epoch=True, max_epochs=1))


@pytest.mark.parametrize('wrong', [
    dict(max_requeues=-1), dict(save_timeout=0)])
def test_wrong_numbers(wrong):
    key, = wrong
    with pytest.raises(ValueError, match=f'PreemptionHook.{key}: expected'):
        PreemptionHook(**wrong)
