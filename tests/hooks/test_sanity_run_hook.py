"""Two batches are validated before a training, which does not notice."""
import re

import pytest
import torch
from mmengine import dist
from mmengine.hooks import Hook
from mmengine.registry import HOOKS, METRICS, MODELS
from resume_run import (
    VALIDATION,
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
from stepnet_mm.utils import error_origin


@MODELS.register_module()
class QueueModel(DropoutModel):
    """Has a queue, as MoCo, and writes to it in evaluations too."""

    def __init__(self):
        super().__init__()
        self.register_buffer('queue', torch.zeros(()))

    def forward(self, *args, **kwargs):
        self.queue += 1
        return super().forward(*args, **kwargs)


def fail(self, *args, **kwargs):
    raise KeyError('iscrowd')


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
class Retriever(DropoutModel):
    """Has a gallery, all of which its first evaluation reads."""

    def __init__(self):
        super().__init__()
        self.prototype = dict(dataset=dict(type='AugmentedDataset'))


def runner_of(folder, **kwargs):
    return resume_runner(
        folder, interval=100, cfg={**VALIDATION, **kwargs}, **kwargs)


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
        error_origin, 'LIBRARIES',
        (*error_origin.LIBRARIES, __name__, RandomMetric.__module__))


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


@pytest.mark.parametrize('owner, method, key', [
    (RandomMetric, 'process', 'val_evaluator'),
    (DropoutModel, 'forward', 'model'),
    (AugmentedDataset, '__getitem__', 'val_dataloader')])
def test_what_fails_is_named(tmp_path, monkeypatch, of_library, owner, method,
                             key):
    monkeypatch.setattr(owner, method, fail)
    with pytest.raises(RuntimeError, match=f'^sanity run, {key}: .*KeyError'
                       '.*iscrowd.*--skip-data-check'):
        SanityRunHook().before_train(runner_of(tmp_path))


def test_an_error_that_may_not_come_again_is_a_warning(tmp_path, monkeypatch):
    """Here of a user's model, which a training may complete."""
    monkeypatch.setattr(DropoutModel, 'forward', fail)
    assert 'sanity run, model: ' in warned(tmp_path)


def test_metrics_that_are_told_to_write_are_not_built(
        tmp_path, loops, of_library):
    metrics = [dict(type='RandomMetric'),
               dict(type='ClearingMetric', outfile_prefix='a')]
    ClearingMetric.built = 0
    assert warned(tmp_path, val_evaluator=metrics) == ''
    assert [*map(type, loops[0].evaluator.metrics)] == [RandomMetric]
    assert ClearingMetric.built == 1  # by the training itself


def test_two_batches_without_a_score_are_a_warning(tmp_path, monkeypatch,
                                                   of_library):
    monkeypatch.setattr(RandomMetric, 'compute_metrics', fail)
    assert re.search('sanity run, val_evaluator: .*RandomMetric.*iscrowd',
                     warned(tmp_path))


def test_a_users_metric_is_not_tried(tmp_path, monkeypatch):
    """It may write anywhere."""
    monkeypatch.setattr(RandomMetric, 'process', fail)
    assert warned(tmp_path) == ''


@pytest.mark.parametrize('settings', [
    dict(hooks=[dict(type='PreparingHook')]),
    dict(model=dict(type='Retriever')),
    dict(train_cfg=dict(by_epoch=True, max_epochs=1, val_begin=2))])
def test_where_it_is_left_out(tmp_path, loops, settings):
    SanityRunHook().before_train(runner_of(tmp_path, **settings))
    assert not loops


def test_all_ranks_end_with_the_error_of_one(tmp_path, monkeypatch,
                                             of_library):
    monkeypatch.setattr(RandomMetric, 'process', lambda *args: (
        dist.get_rank() and fail(*args)))
    first, second = train_on_ranks(
        2, tmp_path, hooks=[dict(type=SanityRunHook)], **VALIDATION)
    assert first == second and 'sanity run, val_eva' in first
