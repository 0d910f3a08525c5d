"""Two batches are validated before a training, which does not notice."""
import json
from types import SimpleNamespace

import pytest
import torch
from mmengine import dist
from mmengine.evaluator import BaseMetric
from mmengine.hooks import Hook
from mmengine.registry import HOOKS, METRICS, MODELS
from resume_run import (
    AugmentedDataset,
    DropoutModel,
    assert_same,
    final_state,
    resume_runner,
    train_on_ranks,
    warnings_of,
)
from torch.utils.data import ConcatDataset, DataLoader

from stepnet_mm.datasets import make_mini_coco
from stepnet_mm.hooks import sanity_run_hook as module
from stepnet_mm.hooks.sanity_run_hook import SanityRunHook, class_warnings
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
    """Fails while it processes, or on one rank."""

    def __init__(self, where):
        super().__init__()
        self.where = where

    def process(self, data_batch, data_samples):
        self.results += data_samples
        if self.where in ('process', dist.get_rank()):
            raise KeyError('iscrowd')

    def compute_metrics(self, results):
        return {}


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


def runner_of(folder, hook=None, **kwargs):
    settings = {**VALIDATION, **kwargs}
    return resume_runner(
        folder, hooks=[dict(type=hook)] if hook else [], cfg=dict(settings),
        interval=100, **settings)


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
    ('val_evaluator', 'KeyError', dict(
        val_evaluator=dict(type='FailingMetric', where='process'))),
    ('val_dataloader', 'TypeError', dict(val_dataloader=dict(
        VALIDATION['val_dataloader'],
        collate_fn=dict(type='default_collate', nothing=1))))])
def test_what_fails_is_named(tmp_path, of_library, key, error, settings):
    with pytest.raises(RuntimeError, match=f'sanity run, {key}: .*{error}'
                       '.*--skip-data-check'):
        SanityRunHook().before_train(runner_of(tmp_path, **settings))


def test_what_a_training_may_make_is_a_warning(tmp_path):
    runner = runner_of(tmp_path, model=dict(type='TrainedModel'))
    lines = warnings_of(runner)
    SanityRunHook().before_train(runner)
    line, = lines
    assert 'sanity run, model: ' in line and 'AttributeError' in line


def test_data_that_cannot_be_looked_at_end_no_training(tmp_path, monkeypatch):
    monkeypatch.setattr(AugmentedDataset, 'dataset',
                        property(lambda self: self), raising=False)
    SanityRunHook().before_train(runner_of(tmp_path))


@pytest.mark.parametrize('settings', [
    dict(hook='PreparingHook'),
    dict(train_cfg=dict(by_epoch=True, max_epochs=1, val_begin=2))])
def test_where_it_is_left_out(tmp_path, loops, settings):
    SanityRunHook().before_train(runner_of(tmp_path, **settings))
    assert not loops


def test_all_ranks_end_with_the_error_of_one(tmp_path, of_library):
    first, second = train_on_ranks(
        2, tmp_path, hooks=[dict(type=SanityRunHook)],
        **{**VALIDATION, 'val_evaluator': dict(
            type='FailingMetric', where=1)})
    assert first == second and 'sanity run, val_eva' in first


NAMES = 'circle', 'square', 'triangle'


@pytest.mark.parametrize('edit, classes, count, words', [
    (False, NAMES, 2, 'num_classes), got 3'),
    (True, ('circle', 'triangle'), 3, 'got 3: '),  # two of one name
    (False, ('Circle', 'square', 'triangle'), 3, 'got 2: '),
    (False, 'circle', 3, 'num_classes), got 6'),
    (False, NAMES, 80, None)])
def test_classes_that_do_not_fit(tmp_path, edit, classes, count, words):
    """Stock trains on them without a word."""
    datasets = pytest.importorskip('mmdet.datasets')
    make_mini_coco(tmp_path, train=3, val=3, size=64)
    path = tmp_path / 'annotations/instances_train2017.json'
    content = json.loads(path.read_text())
    if edit:
        content['categories'][1].update(name='circle')
    path.write_text(json.dumps(content))
    dataset = datasets.CocoDataset(
        str(path), metainfo=dict(classes=classes),
        data_prefix=dict(img=str(tmp_path / 'train2017')))
    model = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Identity())
    model[0].num_classes, model[1].num_classes = 1, count  # as an rpn_head
    lines = class_warnings(SimpleNamespace(
        model=model, val_loop=None, train_loop=SimpleNamespace(
            dataloader=DataLoader(ConcatDataset([dataset])))))
    assert bool(lines) == bool(words)
    assert not words or words in lines[0]
