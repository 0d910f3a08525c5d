"""Two batches are validated before a training, which does not notice."""
import re

import pytest
import torch
from mmengine import dist
from mmengine.hooks import Hook
from mmengine.registry import HOOKS, METRICS, MODELS
from resume_run import (
    AugmentedDataset,
    DropoutModel,
    RandomMetric,
    assert_same,
    final_state,
    resume_runner,
    train_on_ranks,
    warnings_of,
)

from stepnet_mm.hooks import sanity_run_hook as module
from stepnet_mm.hooks.sanity_run_hook import SanityRunHook
from stepnet_mm.models.cifar_resnet import StepResNetCIFAR
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


def fail(self, *args):
    raise KeyError('iscrowd')


def fail_on_the_second_rank(self, *args):
    if dist.get_rank():
        fail(self)


def fill_the_memory(self, *args, **kwargs):
    raise torch.cuda.OutOfMemoryError


@METRICS.register_module()
class ClearingMetric(RandomMetric):
    """Clears its folder, as MOTChallengeMetric, once it is built."""
    built = 0

    def __init__(self, outfile_prefix):
        super().__init__()
        ClearingMetric.built += 1


@HOOKS.register_module()
class PreparingHook(Hook):
    """May do something without which the model cannot be validated."""

    def before_val(self, runner):
        pass


@MODELS.register_module()
class TrainedModel(DropoutModel):
    """Makes in its first training iteration what an evaluation needs."""

    def forward(self, *args, mode='tensor', **kwargs):
        if mode == 'loss':
            self.prototypes = 1
        else:
            assert self.prototypes
        return super().forward(*args, mode=mode, **kwargs)


@MODELS.register_module()
class Retriever(DropoutModel):
    """Has a gallery, all of which its first evaluation reads."""

    def __init__(self):
        super().__init__()
        self.prototype = dict(dataset=dict(type='AugmentedDataset'))


def runner_of(folder, hook=None, **kwargs):
    settings = {**VALIDATION, **kwargs}
    return resume_runner(
        folder, hooks=[dict(type=hook)] if hook else [], cfg=dict(settings),
        interval=100, **settings)


def warned(folder, **settings):
    runner = runner_of(folder, **settings)
    lines = warnings_of(runner)
    SanityRunHook().before_train(runner)
    return '\n'.join(lines)


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
    """What this file and its metric's define is a library's."""
    monkeypatch.setattr(
        user_code, 'LIBRARIES',
        (*user_code.LIBRARIES, __name__, RandomMetric.__module__))


@pytest.mark.core
def test_the_training_is_the_same(tmp_path, loops):
    states = []
    for name in ('plain', 'tried'):
        torch.manual_seed(3)
        runner = runner_of(
            tmp_path / name, model=dict(type='QueueModel'), train_cfg=dict(
                type='ResumableEpochBasedTrainLoop', max_epochs=1))
        if name == 'tried':
            runner.register_hook(SanityRunHook())
        runner.train()
        states.append(final_state(runner))
    assert len(loops) == 1
    assert_same(*states)


@pytest.mark.parametrize('key, error, settings', [
    ('val_evaluator', 'KeyError', {}),
    ('val_dataloader', 'TypeError', dict(val_dataloader=dict(
        VALIDATION['val_dataloader'],
        collate_fn=dict(type='default_collate', nothing=1))))])
def test_what_fails_is_named(tmp_path, monkeypatch, of_library, key, error,
                             settings):
    monkeypatch.setattr(RandomMetric, 'process', fail)
    with pytest.raises(RuntimeError, match=f'sanity run, {key}: .*{error}'
                       '.*--skip-data-check'):
        SanityRunHook().before_train(runner_of(tmp_path, **settings))


def test_untrained_frozen_steps_stop_it_first(tmp_path, loops):
    runner = runner_of(tmp_path)
    runner.model.backbone = StepResNetCIFAR(29, frozen_stages=1)
    with pytest.raises(ValueError, match='frozen_stages=1'):
        SanityRunHook().before_train(runner)
    assert not loops


def test_what_a_training_may_make_is_a_warning(tmp_path):
    lines = warned(tmp_path, model=dict(type='TrainedModel'))
    assert re.search('sanity run, model: .*AttributeError', lines)


def test_too_little_memory_for_two_models_is_a_warning(
        tmp_path, monkeypatch, of_library):
    monkeypatch.setattr(DropoutModel, 'forward', fill_the_memory)
    assert re.search('sanity run, model: .*a second model', warned(tmp_path))


@pytest.mark.parametrize('evaluators', [
    lambda metrics: metrics, lambda metrics: dict(metrics=metrics)])
def test_metrics_that_are_told_to_write_are_not_built(
        tmp_path, loops, of_library, evaluators):
    metrics = [dict(type='RandomMetric'),
               dict(type='ClearingMetric', outfile_prefix='a')]
    ClearingMetric.built = 0
    assert warned(tmp_path, val_evaluator=evaluators(metrics)) == ''
    assert [*map(type, loops[0].evaluator.metrics)] == [RandomMetric]
    assert ClearingMetric.built == 1  # by the training itself


def test_two_batches_without_a_score_are_a_warning(tmp_path, monkeypatch,
                                                   of_library):
    monkeypatch.setattr(RandomMetric, 'compute_metrics', fail)
    assert re.search('sanity run, val_evaluator: .*RandomMetric.*iscrowd',
                     warned(tmp_path))


def test_fewer_classes_than_topk_end_it_at_once(tmp_path, monkeypatch,
                                                of_library):
    def compute_metrics(self, results):
        return torch.zeros(3).topk(5)

    monkeypatch.setattr(RandomMetric, 'compute_metrics', compute_metrics)
    with pytest.raises(RuntimeError, match='^sanity run, val_evaluator: '
                       'expected .*index k out of range'):
        SanityRunHook().before_train(runner_of(tmp_path))


def test_a_users_metric_is_not_tried(tmp_path, monkeypatch):
    """It may write anywhere."""
    monkeypatch.setattr(RandomMetric, 'process', fail)
    assert warned(tmp_path) == ''


def test_data_that_cannot_be_looked_at_end_no_training(tmp_path, monkeypatch):
    monkeypatch.setattr(AugmentedDataset, 'dataset',
                        property(lambda self: self), raising=False)
    SanityRunHook().before_train(runner_of(tmp_path))


@pytest.mark.parametrize('workers', [0, 1])
def test_a_sample_that_fails_is_named(tmp_path, monkeypatch, of_library,
                                      workers):
    monkeypatch.setattr(AugmentedDataset, '__getitem__', fail)
    loader = dict(VALIDATION['val_dataloader'], num_workers=workers)
    with pytest.raises(RuntimeError, match='^sanity run, val_dataloader: '
                       "expected data .*KeyError in fail: 'iscrowd'"):
        SanityRunHook().before_train(
            runner_of(tmp_path, val_dataloader=loader))


@pytest.mark.parametrize('settings', [
    dict(hook='PreparingHook'), dict(model=dict(type='Retriever')),
    dict(train_cfg=dict(by_epoch=True, max_epochs=1, val_begin=2))])
def test_where_it_is_left_out(tmp_path, loops, settings):
    SanityRunHook().before_train(runner_of(tmp_path, **settings))
    assert not loops


def test_all_ranks_end_with_the_error_of_one(tmp_path, monkeypatch,
                                             of_library):
    monkeypatch.setattr(RandomMetric, 'process', fail_on_the_second_rank)
    first, second = train_on_ranks(
        2, tmp_path, hooks=[dict(type=SanityRunHook)], **VALIDATION)
    assert first == second and 'sanity run, val_eva' in first
