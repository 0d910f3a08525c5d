import functools
import random
from itertools import islice

import numpy as np
import pytest
import torch
from mmengine.hooks import Hook
from mmengine.registry import DATA_SAMPLERS
from resume_run import (
    SIZE,
    AugmentedDataset,
    Stopped,
    assert_same,
    final_state,
    resume_runner,
    train_on_ranks,
    warnings_of,
)
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
)

from stepnet_mm.resume import resumable_loader as module
from stepnet_mm.resume.resumable_loader import (
    NumberedBatches,
    Place,
    PlacedBatch,
    SeededSamples,
    resumable_loader,
)
from stepnet_mm.resume.resumable_loops import ResumableIterBasedTrainLoop

# One worker: what these tests share is made once.
pytestmark = pytest.mark.xdist_group('loops')

EPOCHS, ITERATIONS = {}, dict(by_epoch=False)
FINITE = dict(by_epoch=False, sampler=dict(type='DefaultSampler',
                                           shuffle=True))
UNEVEN = dict(by_epoch=False, loader=dict(batch_sampler=dict(
    type='UnevenBatches')))


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
    """The end of a run that was not stopped; each is run once."""
    states = {}

    def state(**settings):
        key = repr(settings)
        if key not in states:
            states[key] = final_state(finish(
                tmp_path_factory.mktemp('whole'), interval=1000, **settings))
        return states[key]

    return state


def finish(folder, **kwargs):
    runner = resume_runner(folder, **kwargs)
    runner.train()
    return runner


def stop(folder, where, at, hooks=(), **kwargs):
    with pytest.raises(Stopped):
        finish(folder, hooks=[
            *hooks, dict(type='StopHook', where=where, at=at)], **kwargs)


@pytest.mark.parametrize('kind, settings, where, at, left', [
    pytest.param(EPOCHS, {}, 'after_train_iter', 7, 3 * SIZE - 21,
                 marks=pytest.mark.core),
    (EPOCHS, {}, 'after_train_iter', 33, 0),
    (EPOCHS, {}, 'after_val_iter', 2, 2 * SIZE),
    pytest.param(EPOCHS, dict(checkpoint=dict(by_epoch=True)),
                 'after_train_iter', 25, SIZE, marks=pytest.mark.core),
    pytest.param(ITERATIONS, dict(interval=4), 'after_train_iter', 15, 63,
                 marks=pytest.mark.core),
    (ITERATIONS, {}, 'after_val_iter', 5, 51),
    (FINITE, {}, 'after_train_iter', 27, 17),
    pytest.param(UNEVEN, {}, 'after_train_iter', 13, 60,
                 marks=[pytest.mark.long, pytest.mark.core])])
def test_a_run_goes_on_bit_for_bit(tmp_path, whole, kind, settings, where, at,
                                   left):
    """Nothing is loaded to be skipped, hooks get the true index of a batch,
    and one that looks at the batches moves nothing.
    """
    stop(tmp_path, where, at, **kind, **settings)
    runner = resume_runner(tmp_path, resume=True, **kind, **settings)
    hook, indices = Hook(), []
    hook.after_train_iter = lambda runner, batch_idx, *_, **__: (
        indices.append(batch_idx))
    if kind in (EPOCHS, FINITE):  # the others' sampler itself would move
        hook.before_train_epoch = lambda runner: [
            *islice(runner.train_dataloader.batch_sampler, 2)]
    runner.register_hook(hook)
    runner.train()
    assert_same(whole(**kind), final_state(runner))
    assert len(runner.train_dataloader.dataset.loaded) == left
    if kind is EPOCHS:
        assert indices == ([*range(11)] * 3)[33 - len(indices):]


@DATA_SAMPLERS.register_module()
class UnevenBatches:
    """Batches of 2 and 4 by turns, as mmdet's aspect ratios make them."""

    def __init__(self, sampler, batch_size):
        self.sampler, self.batch_size = sampler, batch_size

    def __iter__(self):
        indices, size = iter(self.sampler), 2
        while True:
            yield [next(indices) for _ in range(size)]
            size = 6 - size

    def __len__(self):
        return len(self.sampler) // 3


@pytest.mark.long
@pytest.mark.core
def test_stopped_again_and_again_with_workers(tmp_path, whole):
    stop(tmp_path, 'after_train_iter', 5, workers=2)
    for _ in range(2):
        stop(tmp_path, 'after_train_iter', 8, resume=True, workers=2)
    resumed = finish(tmp_path, resume=True)
    assert_same(whole(), final_state(resumed))


@pytest.mark.parametrize('by_epoch, patience, end', [
    (True, 1, 22), (False, 2, 24)])
def test_early_stopping_counts_on(tmp_path, by_epoch, patience, end):
    """And a training that it has ended stays at its end."""
    settings = dict(
        by_epoch=by_epoch, val_evaluator=dict(type='FallingMetric'),
        hooks=[dict(type='EarlyStoppingHook', monitor='loss', rule='greater',
                    patience=patience)])
    stop(tmp_path, 'after_train_iter', 15, **settings)
    for _ in range(2):
        assert finish(tmp_path, resume=True, **settings).iter == end


@pytest.mark.core
def test_a_seed_that_was_drawn_is_kept(tmp_path):
    settings = dict(randomness=dict(seed=None))
    first = finish(tmp_path / 'first', **settings)
    stop(tmp_path / 'b', 'after_train_iter', 14,
         randomness=dict(seed=first.seed))
    # The config of the resumed run says None again, and draws another one.
    resumed = finish(tmp_path / 'b', resume=True, **settings)
    assert_same(final_state(first), final_state(resumed))


@pytest.mark.core
def test_a_finite_sampler_takes_the_order_that_mmengine_does(tmp_path):
    seen = []
    for kind in ('IterBasedTrainLoop', 'ResumableIterBasedTrainLoop'):
        runner = finish(tmp_path / kind, interval=1000, **FINITE,
                        train_cfg=dict(type=kind, max_iters=24))
        seen.append(runner.train_dataloader.dataset.loaded[:24 * 3 - 2])
    assert seen[0] == seen[1]
    assert seen[0][:SIZE] != seen[0][SIZE:2 * SIZE]


def test_a_sample_drawn_twice_is_augmented_in_two_ways():
    samples = SeededSamples(AugmentedDataset())

    def draw(*place):
        return [sample['inputs'][0].item() for sample in
                samples(PlacedBatch([3, 3], place))]

    drawn = draw(0, 0, 5, 0)
    assert drawn == draw(0, 0, 5, 0)
    for place in [(1, 0, 5, 0), (0, 1, 5, 0), (0, 0, 6, 0), (0, 0, 5, 1)]:
        drawn += draw(*place)
    assert len({*drawn}) == 10


def test_the_rank_is_part_of_a_samples_place(monkeypatch):
    monkeypatch.setattr(module, 'get_rank', lambda: 7)
    batch, = NumberedBatches([[3], [4, 5]], Place(seed=6, epoch=2, start=1))
    assert (batch, batch.place) == ([4, 5], (6, 2, 1, 7))


@pytest.mark.core
def test_a_loader_draws_nothing_from_the_training():
    loader = resumable_loader(DataLoader([0., 1.]), Place(0))
    before = torch.get_rng_state()
    assert len([*loader]) == 2
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize('by_epoch, left', [
    (True, 3 * SIZE),  # the epoch begins anew, as under mmengine
    (False, (33 - 5) * 3)])
def test_a_checkpoint_of_mmengine_is_taken_with_a_warning(
        tmp_path, by_epoch, left):
    settings = dict(by_epoch=by_epoch, interval=5,
                    checkpoint=dict(type='CheckpointHook'))
    stop(tmp_path, 'after_train_iter', 7, **settings)
    runner = resume_runner(tmp_path, resume=True, **settings)
    logged = warnings_of(runner)
    runner.train()
    assert len(runner.train_dataloader.dataset.loaded) == left
    assert any('no training state' in line for line in logged)


@pytest.mark.parametrize('by_epoch, loader, changed, left', [
    (True, dict(batch_size=6), 'batch_size was 3 and is 6', 3 * SIZE - 24),
    (False, dict(batch_size=6), 'batch_size was 3 and is 6', (33 - 8) * 6),
    # The epoch is through.
    (True, dict(dataset=dict(type='AugmentedDataset', size=9)),
     'samples was 32 and is 9', 2 * 9)])
def test_other_data_go_on_after_as_many_samples(tmp_path, by_epoch, loader,
                                                changed, left):
    stop(tmp_path, 'after_train_iter', 8, by_epoch=by_epoch)
    runner = resume_runner(tmp_path, by_epoch=by_epoch, resume=True,
                           loader=loader)
    logged = warnings_of(runner)
    runner.train()
    assert any(changed in line for line in logged)
    assert len(runner.train_dataloader.dataset.loaded) == left
    assert not by_epoch or runner.iter == 3 * len(runner.train_dataloader)


def test_fewer_samples_than_ranks(tmp_path):
    ends = train_on_ranks(2, tmp_path, loader=dict(
        dataset=dict(type='AugmentedDataset', size=1)))
    assert [end['iteration'] for end in ends] == [3, 3]


def test_samples_without_an_index(tmp_path):

    class Stream(IterableDataset):
        metainfo = {}

        def __iter__(self):
            return iter(())

    runner = resume_runner(tmp_path, by_epoch=False)
    with pytest.raises(ValueError, match='exact_resume=False'):
        ResumableIterBasedTrainLoop(runner, DataLoader(Stream()), max_iters=1)


class LookingHook(Hook):
    """Uses the loader of a training as hooks of users do."""

    def before_train_epoch(self, runner):
        loader = runner.train_dataloader
        dataset, batches = loader.dataset, loader.batch_sampler
        torch.manual_seed(0), np.random.seed(0), random.seed(0)
        self.seen = [
            dataset[3], [*islice(dataset, 3)], len(dataset), len(batches),
            isinstance(dataset, Dataset), isinstance(batches, BatchSampler),
            hasattr(dataset, 'metainfo'), loader.batch_size, loader.drop_last,
            type(loader.sampler), type(batches.sampler), batches.batch_size,
            [[*batch] for batch in islice(batches, 3)],
            [*islice(DataLoader(dataset, 2), 3)],
            [*islice(DataLoader(range(SIZE), batch_sampler=batches), 3)]]
        dataset.pipeline = 'another'
        # mmengine's wrapper for num_batch_per_epoch passes on no setting.
        self.seen += [dataset.pipeline, hasattr(dataset._dataset, 'pipeline')]

    def before_train_iter(self, *_, **__):
        raise Stopped


@pytest.mark.parametrize('by_epoch', [True, False])
def test_a_hook_finds_the_loader_as_in_mmengines_loop(tmp_path, by_epoch):
    seen = []
    for kind in ('', 'Resumable'):
        runner = resume_runner(
            tmp_path / kind, **{**FINITE, 'by_epoch': by_epoch},
            loader=dict(num_batch_per_epoch=5 if by_epoch else 9))
        runner._train_loop['type'] = kind + (
            'EpochBasedTrainLoop' if by_epoch else 'IterBasedTrainLoop')
        hook = LookingHook()
        runner.register_hook(hook, priority='VERY_HIGH')
        with pytest.raises(Stopped):
            runner.train()
        seen.append(hook.seen)
    assert_same(*seen)


def test_mmdets_samplers_of_several_sources_have_a_list(tmp_path):
    loop = resume_runner(tmp_path).train_loop
    loop.dataloader.batch_sampler.batch_size = [1, 4]
    assert loop.progress()['batch_size'] == 5


@pytest.mark.parametrize('settings, loader', [
    (EPOCHS, dict(batch_size=64, drop_last=True)),
    (FINITE, dict(batch_size=64, drop_last=True)),
    (ITERATIONS, dict(dataset=dict(type='AugmentedDataset', size=0)))])
def test_a_batch_sampler_without_batches(tmp_path, settings, loader):
    with pytest.raises(ValueError, match='expected batches, got none'):
        finish(tmp_path, loader=loader, **settings)


@pytest.mark.core
def test_each_rank_goes_on_as_itself(tmp_path):
    """With random numbers, averages and averaged buffers of its own.

    Validation uses the buffers, and the best checkpoint depends on it.
    """
    settings = dict(workers=2, ema=dict(update_buffers=True), interval=4)
    run = functools.partial(train_on_ranks, 2)
    whole = run(tmp_path / 'whole', **settings)
    run(tmp_path / 'b', hooks=[dict(type='StopHook', at=14)], **settings)
    resumed = run(tmp_path / 'b', resume=True, **settings)
    # The message hub is the first rank's, which alone logs.
    del whole[1]['scalars'], resumed[1]['scalars']
    assert_same(whole, resumed)
    name = 'layers.1.running_mean'
    means = [state['model'][f'module.{name}'] for state in resumed]
    assert not torch.equal(*means)


@pytest.mark.long
def test_more_ranks_than_two(tmp_path):
    """DDP sorts its gradients anew unless it looks for unused ones."""
    run = functools.partial(train_on_ranks, 4, find_unused=True)
    whole = run(tmp_path / 'whole')
    run(tmp_path / 'b', hooks=[dict(type='StopHook', at=6)])
    resumed = run(tmp_path / 'b', resume=True)
    assert_same(whole[0], resumed[0])


def test_two_ranks_go_on_as_one(tmp_path):
    train_on_ranks(2, tmp_path, hooks=[dict(type='StopHook', at=5)])
    runner = resume_runner(tmp_path, resume=True, interval=1000)
    logged = warnings_of(runner)
    runner.train()
    assert any('world_size was 2 and is 1' in line for line in logged)
    # 5 batches of 2 x 3 samples are 10 of this one rank's.
    assert len(runner.train_dataloader.dataset.loaded) == 3 * SIZE - 30
    assert runner.iter == 33
