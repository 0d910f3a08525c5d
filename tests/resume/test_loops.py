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
    Stopped,
    assert_same,
    final_state,
    resume_runner,
    train_on_ranks,
)
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
)

from stepnet_mm.resume import resumable_loader as module
from stepnet_mm.resume.loops import ResumableIterBasedTrainLoop
from stepnet_mm.resume.resumable_loader import (
    NumberedBatches,
    Place,
    PlacedBatch,
    resumable_loader,
)

# One worker: what these tests share is made once.
pytestmark = pytest.mark.xdist_group('loops')

ITERATIONS = dict(by_epoch=False)


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp('whole')


@pytest.fixture
def whole(folder):
    """The end of a run that was not stopped; each is run once."""

    def state(**kwargs):
        key = repr(kwargs)
        if key not in _WHOLE:
            _WHOLE[key] = final_state(finish(folder / str(len(_WHOLE)),
                                             **kwargs))
        return _WHOLE[key]

    return state


_WHOLE = {}


def finish(folder, interval=1000, **kwargs):
    runner = resume_runner(folder, interval=interval, **kwargs)
    runner.train()
    return runner


def stop(folder, where, at, interval=1, hooks=(), **kwargs):
    with pytest.raises(Stopped):
        finish(folder, interval, hooks=[
            *hooks, dict(type='StopHook', where=where, at=at)], **kwargs)


def stop_and_resume(folder, where, at, interval=1, **kwargs):
    stop(folder, where, at, interval, **kwargs)
    return finish(folder, resume=True, **kwargs)


@pytest.mark.parametrize('where, at, seen', [
    pytest.param('after_train_iter', 7, 21, marks=pytest.mark.core),
    ('after_train_iter', 11, SIZE),
    ('after_train_iter', 33, 3 * SIZE),
    ('after_val_iter', 2, SIZE),
    ('after_val', 1, SIZE),
])
def test_epochs_go_on_bit_for_bit(tmp_path, whole, where, at, seen):
    """And nothing is loaded to be passed over."""
    resumed = stop_and_resume(tmp_path, where, at)
    assert_same(whole(), final_state(resumed))
    assert len(resumed.train_dataloader.dataset.loaded) == 3 * SIZE - seen


@pytest.mark.parametrize('where, at, seen', [
    pytest.param('after_train_iter', 13, 39, marks=pytest.mark.core),
    ('after_train_iter', 16, 48),
    ('after_val_iter', 5, 48),
])
def test_iterations_go_on_bit_for_bit(tmp_path, whole, where, at, seen):
    resumed = stop_and_resume(tmp_path, where, at, **ITERATIONS)
    assert_same(whole(**ITERATIONS), final_state(resumed))
    assert len(resumed.train_dataloader.dataset.loaded) == 33 * 3 - seen


@pytest.mark.parametrize('by_epoch', [True, False])
def test_from_a_checkpoint_some_iterations_back(tmp_path, whole, by_epoch):
    """A kill, not a clean stop: what came after the last save is redone."""
    resumed = stop_and_resume(tmp_path, 'after_train_iter', 15,
                              by_epoch=by_epoch, interval=4)
    assert_same(whole(by_epoch=by_epoch), final_state(resumed))


@pytest.mark.parametrize('by_epoch, where, at, end', [
    (True, 'after_train_iter', 15, 22), (False, 'after_train_iter', 20, 24),
    (True, 'after_val', 2, 22), (False, 'before_train', 2, 24)])
def test_early_stopping_counts_on(tmp_path, by_epoch, where, at, end):
    """Also where the training has ended by it: it stays at its end."""
    settings = dict(by_epoch=by_epoch, val_evaluator=dict(
        type='FallingMetric'))
    patient = dict(type='EarlyStoppingHook', monitor='loss', rule='greater',
                   patience=1 if by_epoch else 2)
    if at == 2:
        runner = finish(tmp_path, hooks=[patient], **settings)
        assert runner.iter == end
    else:
        stop(tmp_path, where, at, hooks=[patient], **settings)
    assert finish(tmp_path, hooks=[patient], resume=True,
                  **settings).iter == end


@pytest.mark.core
def test_from_a_checkpoint_of_whole_epochs(tmp_path, whole):
    resumed = stop_and_resume(
        tmp_path, 'after_train_iter', 25,
        checkpoint=dict(by_epoch=True, interval=1))
    assert_same(whole(), final_state(resumed))


@pytest.mark.long
def test_stopped_again_and_again(tmp_path, whole):
    stop(tmp_path, 'after_train_iter', 5)
    for _ in range(2):
        stop(tmp_path, 'after_train_iter', 8, resume=True)
    resumed = finish(tmp_path, resume=True)
    assert_same(whole(), final_state(resumed))


@pytest.mark.long
@pytest.mark.core
def test_workers_do_not_matter(tmp_path, whole):
    resumed = stop_and_resume(tmp_path, 'after_train_iter', 14, workers=2)
    assert_same(whole(), final_state(resumed))


@pytest.mark.core
def test_a_seed_that_was_drawn_is_kept(tmp_path):
    settings = dict(randomness=dict(seed=None))
    first = finish(tmp_path / 'first', **settings)
    seed = first.seed
    stop(tmp_path / 'b', 'after_train_iter', 14, randomness=dict(seed=seed))
    # The config of the resumed run says None again, and draws another one.
    resumed = finish(tmp_path / 'b', resume=True, **settings)
    assert_same(final_state(first), final_state(resumed))


@pytest.mark.long
def test_a_finite_sampler_goes_round_and_on(tmp_path, whole):
    settings = dict(
        by_epoch=False, sampler=dict(type='DefaultSampler', shuffle=True))
    resumed = stop_and_resume(tmp_path, 'after_train_iter', 27, **settings)
    assert_same(whole(**settings), final_state(resumed))


@pytest.mark.core
def test_a_finite_sampler_takes_the_order_that_mmengine_does(tmp_path):
    seen = []
    for kind in ('IterBasedTrainLoop', 'ResumableIterBasedTrainLoop'):
        runner = finish(
            tmp_path / kind,
            by_epoch=False,
            sampler=dict(type='DefaultSampler', shuffle=True),
            train_cfg=dict(type=kind, max_iters=24))
        seen.append(runner.train_dataloader.dataset.loaded[:24 * 3 - 2])
    assert seen[0] == seen[1]
    assert seen[0][:SIZE] != seen[0][SIZE:2 * SIZE]


@pytest.mark.long
@pytest.mark.core
def test_hooks_get_the_true_batch_index(tmp_path):
    runner = resume_runner(tmp_path, hooks=[dict(type='StopHook', at=7)])
    with pytest.raises(Stopped):
        runner.train()
    runner = resume_runner(tmp_path, resume=True)
    seen = []
    hook = runner.hooks[0]
    before = hook.after_train_iter
    hook.after_train_iter = lambda runner, batch_idx, *args, **kwargs: (
        seen.append(batch_idx), before(runner, batch_idx, *args, **kwargs))
    runner.train()
    assert seen == [*range(7, 11), *range(11), *range(11)]


@pytest.mark.long
@pytest.mark.core
def test_batch_samplers_of_others_are_passed_over_by_whole_batches(
        tmp_path, whole):
    settings = dict(by_epoch=False)
    loader = resume_runner(tmp_path / 'x', **settings)._train_dataloader
    loader = {**loader, 'batch_sampler': dict(type='UnevenBatches')}
    settings['train_dataloader'] = loader
    resumed = stop_and_resume(tmp_path / 'y', 'after_train_iter', 13,
                              **settings)
    assert_same(whole(**settings), final_state(resumed))


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


def test_a_sample_drawn_twice_is_augmented_in_two_ways(tmp_path):
    runner = resume_runner(tmp_path, workers=2)
    dataset = runner.train_dataloader.dataset

    def draw(*place):
        return dataset.__getitems__(PlacedBatch([3, 3], place))

    same, other = draw(0, 0, 5, 0)
    assert torch.equal(same['inputs'], draw(0, 0, 5, 0)[0]['inputs'])
    for place in [(1, 0, 5, 0), (0, 1, 5, 0), (0, 0, 6, 0), (0, 0, 5, 1)]:
        assert not torch.equal(same['inputs'], draw(*place)[0]['inputs'])
    assert not torch.equal(same['inputs'], other['inputs'])


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
    (False, (33 - 5) * 3),
])
def test_a_checkpoint_of_mmengine_is_taken_with_a_warning(
        tmp_path, by_epoch, left):
    settings = dict(by_epoch=by_epoch, interval=5,
                    checkpoint=dict(type='CheckpointHook'))
    stop(tmp_path, 'after_train_iter', 7, **settings)
    runner = resume_runner(tmp_path, resume=True, **settings)
    logged = capture(runner)
    runner.train()
    assert len(runner.train_dataloader.dataset.loaded) == left
    assert any('no training state' in line for line in logged)


def test_a_training_state_of_another_shape(tmp_path):
    stop(tmp_path, 'after_train_iter', 7, interval=5)
    last = tmp_path / 'iter_5.pth'
    checkpoint = torch.load(last, weights_only=False)
    state = checkpoint['training_state']
    for key, value in (('ranks', {}), ('ranks', [{}]), ('ranks', None),
                       ('batches', 10**15), ('batches', -1)):
        checkpoint['training_state'] = dict(state, **{key: value})
        torch.save(checkpoint, last)
        runner = resume_runner(tmp_path, resume=True, load_from=str(last))
        with pytest.raises(ValueError, match='training_state.*exact_resume'):
            runner.train()


def capture(runner):
    lines = []
    runner.logger.warning = lines.append
    return lines


@pytest.mark.parametrize('by_epoch', [True, False])
def test_other_batch_sizes_go_on_after_as_many_samples(tmp_path, by_epoch):
    stop(tmp_path, 'after_train_iter', 8, by_epoch=by_epoch)
    runner = resume_runner(tmp_path, by_epoch=by_epoch, resume=True)
    runner._train_dataloader['batch_size'] = 6
    logged = capture(runner)
    runner.train()
    assert any('batch_size was 3 and is 6' in line for line in logged)
    seen = runner.train_dataloader.dataset.loaded
    assert len(seen) == (3 * SIZE - 24 if by_epoch else (33 - 8) * 6)


def test_a_smaller_dataset_ends_the_epoch(tmp_path):
    stop(tmp_path, 'after_train_iter', 8)
    runner = resume_runner(tmp_path, resume=True)
    runner._train_dataloader['dataset']['size'] = 9
    logged = capture(runner)
    runner.train()
    assert any('samples was 32 and is 9' in line for line in logged)
    assert len(runner.train_dataloader.dataset.loaded) == 2 * 9
    assert runner.iter == 3 * 3


def test_fewer_samples_than_ranks(tmp_path):
    run = functools.partial(train_on_ranks, 2, train_dataloader=dict(
        dataset=dict(type='AugmentedDataset', size=1), batch_size=3,
        sampler=dict(type='DefaultSampler', shuffle=True)))
    whole = run(tmp_path / 'whole')
    run(tmp_path / 'b', hooks=[dict(type='StopHook', at=2)])
    assert_same(whole[0], run(tmp_path / 'b', resume=True)[0])
    assert whole[0]['iteration'] == 3


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


@pytest.mark.parametrize('by_epoch', [True, False])
def test_a_hook_finds_the_loader_as_in_mmengines_loop(tmp_path, by_epoch):
    seen = []
    for kind in ('', 'Resumable'):
        runner = resume_runner(
            tmp_path / kind, by_epoch=by_epoch,
            sampler=dict(type='DefaultSampler', shuffle=True))
        runner._train_dataloader['num_batch_per_epoch'] = 5 if by_epoch else 9
        runner._train_loop['type'] = kind + (
            'EpochBasedTrainLoop' if by_epoch else 'IterBasedTrainLoop')
        hook = LookingHook()
        hook.before_train_iter = lambda *_, **__: 1 / 0
        runner.register_hook(hook, priority='VERY_HIGH')
        with pytest.raises(ZeroDivisionError):
            runner.train()
        seen.append(hook.seen)
    assert_same(*seen)


@pytest.mark.parametrize('by_epoch', [True, False])
def test_a_hook_that_looks_at_the_batches_moves_no_resume(tmp_path, whole,
                                                          by_epoch):
    settings = dict(
        by_epoch=by_epoch, sampler=dict(type='DefaultSampler', shuffle=True))
    stop(tmp_path, 'after_train_iter', 7, **settings)
    runner = resume_runner(tmp_path, resume=True, **settings)
    hook = Hook()
    hook.before_train_epoch = lambda runner: [
        *islice(runner.train_dataloader.batch_sampler, 2)]
    runner.register_hook(hook)
    runner.train()
    assert_same(whole(**settings), final_state(runner))


def test_mmdets_samplers_of_several_sources_have_a_list(tmp_path):
    loop = resume_runner(tmp_path).train_loop
    loop.dataloader.batch_sampler.batch_size = [1, 4]
    assert loop.progress()['batch_size'] == 5


@pytest.mark.parametrize('by_epoch', [True, False])
def test_a_batch_sampler_without_batches(tmp_path, by_epoch):
    runner = resume_runner(
        tmp_path,
        by_epoch=by_epoch,
        sampler=dict(type='DefaultSampler', shuffle=True))
    runner._train_dataloader.update(batch_size=64, drop_last=True)
    with pytest.raises(ValueError, match='expected batches, got none'):
        runner.train()


def test_a_dataset_without_samples(tmp_path):
    runner = resume_runner(tmp_path, by_epoch=False)
    runner._train_dataloader['dataset']['size'] = 0
    with pytest.raises(ValueError, match='expected batches, got none'):
        runner.train()


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
    runner = resume_runner(tmp_path, resume=True)
    logged = capture(runner)
    runner.train()
    assert any('world_size was 2 and is 1' in line for line in logged)
    # 5 batches of 2 x 3 samples are 10 of this one rank's.
    assert len(runner.train_dataloader.dataset.loaded) == 3 * SIZE - 30
    assert runner.iter == 33
