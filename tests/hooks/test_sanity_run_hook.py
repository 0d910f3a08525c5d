"""Two batches are validated before a training, which does not notice."""
import pytest
import torch
from mmengine import dist
from mmengine.evaluator import BaseMetric
from mmengine.hooks import Hook
from mmengine.logging import MessageHub
from mmengine.registry import DATASETS, HOOKS, METRICS, MODELS
from mmengine.runner import ValLoop
from resume_run import (
    AugmentedDataset,
    DropoutModel,
    assert_same,
    final_state,
    resume_runner,
    train_on_ranks,
)

from stepnet_mm.hooks import sanity_run_hook as module
from stepnet_mm.hooks.sanity_run_hook import SanityRunHook
from stepnet_mm.utils import user_code

VALIDATION = dict(
    val_dataloader=dict(
        dataset=dict(type='AugmentedDataset', size=6),
        sampler=dict(type='DefaultSampler', shuffle=False), batch_size=2),
    val_evaluator=dict(type='RandomMetric'))


@MODELS.register_module()
class QueueModel(DropoutModel):
    """Has a queue, as MoCo, and writes to it in evaluations too."""

    def __init__(self):
        super().__init__()
        self.register_buffer('queue', torch.zeros(()))

    def forward(self, *args, **kwargs):
        self.queue += 1
        return super().forward(*args, **kwargs)


@METRICS.register_module()
class FailingMetric(BaseMetric):
    """Fails in one of its two methods, or on one rank."""

    def __init__(self, where):
        super().__init__()
        self.where = where

    def process(self, data_batch, data_samples):
        self.results += data_samples
        self._maybe('process')

    def compute_metrics(self, results):
        self._maybe('compute_metrics')
        return dict(count=len(results))

    def _maybe(self, where):
        if where == self.where or dist.get_rank() == self.where:
            raise KeyError('iscrowd')


@HOOKS.register_module()
class PreparingHook(Hook):
    """Does something without which the model cannot be validated."""

    def before_val(self, runner):
        runner.prepared = True


@MODELS.register_module()
class TrainedModel(DropoutModel):
    """Makes in its first training iteration what an evaluation needs."""

    def forward(self, *args, mode='tensor', **kwargs):
        if mode == 'loss':
            self.prototypes = 1
        else:
            assert self.prototypes
        return super().forward(*args, mode=mode, **kwargs)


@DATASETS.register_module()
class FadingDataset(AugmentedDataset):
    """Depends on the training's loss."""

    def __getitem__(self, i):
        hub = MessageHub.get_current_instance()
        assert hub.get_scalar('train/loss').current()
        return super().__getitem__(i)


def runner_of(folder, sanity=True, hook=None, **kwargs):
    settings = {**VALIDATION, **kwargs}
    runner = resume_runner(
        folder, hooks=[dict(type=hook)] if hook else [], cfg=dict(settings),
        **settings)
    if sanity:
        runner.register_hook(SanityRunHook())
    return runner


@pytest.fixture
def loops(monkeypatch):
    """The val loops of sanity runs."""
    made, make = [], module._build_loop

    def note(*args):
        made.append(make(*args))
        return made[-1]

    monkeypatch.setattr(module, '_build_loop', note)
    return made


@pytest.fixture
def of_library(monkeypatch):
    """What this file defines is a library's."""
    monkeypatch.setattr(user_code, 'LIBRARIES',
                        (*user_code.LIBRARIES, __name__))


def trained(folder, sanity, **kwargs):
    torch.manual_seed(3)
    runner = runner_of(folder, sanity, **kwargs)
    runner.train()
    return final_state(runner)


@pytest.mark.core
@pytest.mark.parametrize('settings', [
    dict(model=dict(type='QueueModel')),
    dict(by_epoch=False, model=dict(type='QueueModel')),
    pytest.param(dict(train_cfg=dict(by_epoch=True, max_epochs=2)),
                 marks=pytest.mark.long),
    pytest.param(dict(train_cfg=dict(by_epoch=False, max_iters=9),
                      by_epoch=False, workers=2), marks=pytest.mark.long)])
def test_the_training_is_the_same(tmp_path, loops, settings):
    plain = trained(tmp_path / 'plain', False, **settings)
    assert not loops
    tried = trained(tmp_path / 'tried', True, **settings)
    assert len(loops) == 1
    assert_same(plain, tried)


@pytest.mark.parametrize('given, taken', [(0, 0), (2, 1)])
def test_no_worker_where_the_config_has_none(tmp_path, loops, given, taken):
    loader = dict(VALIDATION['val_dataloader'], num_workers=given)
    runner_of(tmp_path, val_dataloader=loader,
              train_cfg=dict(by_epoch=True, max_epochs=1)).train()
    assert loops[0].dataloader.num_workers == taken


def test_what_fails_is_named(tmp_path, of_library):
    absent = dict(VALIDATION['val_dataloader'],
                  collate_fn=dict(type='default_collate', nothing=1))
    for key, error, settings in (
            ('val_evaluator', 'KeyError', dict(
                val_evaluator=dict(type='FailingMetric', where='process'))),
            ('val_dataloader', 'TypeError', dict(val_dataloader=absent))):
        runner = runner_of(tmp_path / key, **settings)
        with pytest.raises(RuntimeError, match=f'sanity run, {key}: .*{error}'
                           '.*--skip-data-check'):
            runner.train()
        assert not runner.iter


@pytest.mark.parametrize('key, settings', [
    ('model', dict(model=dict(type='TrainedModel'))),
    ('val_dataloader', dict(val_dataloader=dict(
        VALIDATION['val_dataloader'], num_workers=1,
        dataset=dict(type='FadingDataset', size=6))))])
def test_what_a_training_may_make_is_a_warning(tmp_path, monkeypatch, key,
                                               settings):
    runner, lines = runner_of(tmp_path, **settings), []
    monkeypatch.setattr(runner.logger, 'warning', lines.append)
    runner.train()
    assert [line for line in lines if f'sanity run, {key}: ' in line]


def test_a_metric_that_cannot_score_two_batches_is_a_warning(
        tmp_path, monkeypatch):
    runner, lines = runner_of(tmp_path, val_evaluator=[
        dict(type='RandomMetric'),
        dict(type='FailingMetric', where='compute_metrics')]), []
    monkeypatch.setattr(runner.logger, 'warning', lines.append)
    # Nor do data that cannot be looked at end the training.
    monkeypatch.setattr(type(runner.train_dataloader.dataset), 'dataset',
                        property(lambda self: self), raising=False)
    with pytest.raises(KeyError):
        runner.train()
    assert runner.epoch == 1
    assert any('sanity run, val_evaluator: FailingMetric' in line
               and 'iscrowd' in line for line in lines)


@pytest.mark.parametrize('settings', [
    dict(hook='PreparingHook'),
    dict(train_cfg=dict(by_epoch=True, max_epochs=1, val_begin=2)),
    dict(val_cfg=dict(type='OwnValLoop'))])
def test_where_it_is_left_out(tmp_path, loops, settings):
    from mmengine.registry import LOOPS

    @LOOPS.register_module(force=True)
    class OwnValLoop(ValLoop):
        pass

    runner_of(tmp_path, **settings).train()
    assert not loops


def test_ranks(tmp_path, of_library):
    plain, tried, failed = (
        train_on_ranks(2, tmp_path / name, by_epoch=False, hooks=hooks,
                       **{**VALIDATION, **settings})
        for name, hooks, settings in (
            ('plain', [], {}), ('tried', [dict(type=SanityRunHook)], {}),
            ('failed', [dict(type=SanityRunHook)],
             dict(val_evaluator=dict(type='FailingMetric', where=1)))))
    assert_same(plain, tried)
    assert failed[0] == failed[1] and 'sanity run, val_eva' in failed[0]
