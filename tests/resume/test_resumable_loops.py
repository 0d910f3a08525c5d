from collections import Counter
from itertools import islice

import pytest
import torch
from mmengine.registry import DATA_SAMPLERS
from resume_run import (
    SIZE,
    AugmentedDataset,
    assert_same,
    final_state,
    resume_runner,
    resumed,
    seen,
    train,
    train_on_ranks,
)
from torch.utils import data as torch_data
from torch.utils.data import (
    BatchSampler,
    ChainDataset,
    DataLoader,
    get_worker_info,
)

from stepnet_mm.resume import resumable_loader as module
from stepnet_mm.resume.resumable_loader import NumberedBatches, ResumableLoader
from stepnet_mm.utils import random_state

# One worker: what these tests share is made once.
pytestmark = pytest.mark.xdist_group('loops')

EPOCHS, ITERATIONS = {}, dict(by_epoch=False)
FINITE = dict(by_epoch=False, sampler=dict(type='DefaultSampler',
                                           shuffle=True))
#: Batches that the dataset cannot fill, but an endless sampler can.
LARGE = dict(by_epoch=False, loader=dict(batch_size=64, drop_last=True))
#: Draws from the global generators.
RANDOM = dict(sampler=dict(type='RandomSampler'))


@DATA_SAMPLERS.register_module()
class RandomSampler(torch_data.RandomSampler):
    def __init__(self, dataset, seed):
        super().__init__(dataset)


@pytest.mark.parametrize('kind, settings, stop, left', [
    pytest.param(EPOCHS, {}, 7, 3 * SIZE - 21, marks=pytest.mark.core),
    pytest.param(EPOCHS, dict(checkpoint=dict(by_epoch=True)), 25, SIZE,
                 marks=pytest.mark.core),
    pytest.param(ITERATIONS, dict(interval=4), 15, 63,
                 marks=pytest.mark.core),
    # The workers load all; the whole run has none.
    pytest.param(EPOCHS, dict(workers=2), 14, 0, marks=pytest.mark.core),
    (FINITE, {}, 27, 17),
    (LARGE, {}, 8, (33 - 8) * 64),
    (RANDOM, {}, 14, 3 * SIZE - 41)],
    ids=['epochs', 'saved by epoch', 'iterations', 'workers', 'finite',
         'large', 'global generators'])
def test_a_run_goes_on_bit_for_bit(tmp_path, whole, kind, settings, stop,
                                   left):
    """Nothing is loaded to be skipped, hooks get the true index of a batch,
    and one that looks at the batches moves nothing.
    """
    train(tmp_path, stop, **kind, **settings)
    indices, lines = [], []
    on = dict(after_train_iter=lambda runner, batch_idx, *_, **__: (
        indices.append(batch_idx)))
    if kind in (EPOCHS, FINITE):  # the others' sampler itself would move
        on['before_train_epoch'] = lambda runner: [
            *islice(runner.train_dataloader.batch_sampler, 2)]
    runner = resume_runner(tmp_path, resume=True, on=on, **kind, **settings)
    runner.logger.info = lines.append
    runner.train()
    assert_same(whole(**kind), final_state(runner))
    assert seen(runner) == left
    # In the third epoch it begins with the first batch.
    assert any('led past' in line for line in lines) == (left != SIZE)
    if kind is EPOCHS:
        assert indices == ([*range(11)] * 3)[33 - len(indices):]


def test_a_validation_that_is_due_may_be_left_out(tmp_path):
    """As --no-validate does it."""
    train(tmp_path, 25, checkpoint=dict(by_epoch=True))
    runner = train(tmp_path, resume=True, checkpoint=dict(by_epoch=True),
                   val_cfg=None, val_dataloader=None, val_evaluator=None)
    assert runner.iter == 33


def test_early_stopping_counts_on(tmp_path):
    """And a training that it has ended stays at its end."""
    settings = dict(
        by_epoch=False, val_evaluator=dict(type='FallingMetric'),
        hooks=[dict(type='EarlyStoppingHook', monitor='loss', rule='greater',
                    patience=2)])
    train(tmp_path, 15, **settings)
    for _ in range(2):
        assert train(tmp_path, resume=True, **settings).iter == 24


@pytest.mark.core
def test_a_finite_sampler_takes_the_order_that_mmengine_does(tmp_path):
    orders = []
    for kind in ('IterBasedTrainLoop', 'ResumableIterBasedTrainLoop'):
        runner = train(tmp_path / kind, interval=1000, **FINITE,
                       train_cfg=dict(type=kind, max_iters=24))
        orders.append(runner.train_dataloader.dataset.loaded[:24 * 3 - 2])
    assert orders[0] == orders[1]
    assert orders[0][:SIZE] != orders[0][SIZE:2 * SIZE]


def test_the_rank_is_part_of_a_samples_place(monkeypatch):
    monkeypatch.setattr(module, 'get_rank', lambda: 7)
    batches = NumberedBatches([[3], [4, 5]], seed=6)
    batches.epoch, batches.start = 2, 1
    assert [*batches] == [[(4, (6, 2, 1, 7, 0)), (5, (6, 2, 1, 7, 1))]]


def test_to_skip_batches_is_cheap_and_gives_the_same(monkeypatch):
    """A resume far in would take a minute to seed for each."""
    batch_sampler = BatchSampler(RandomSampler(range(40), 0), 4, True)
    every = NumberedBatches(batch_sampler, seed=1)
    every.endless = True
    expected = [*islice(every, 1000)]
    seeded, seed = [], random_state.seed_generators
    monkeypatch.setattr(random_state, 'seed_generators', lambda *entropy: (
        seeded.append(entropy), seed(*entropy)))
    later = NumberedBatches(batch_sampler, seed=1)
    later.start, later.endless = 990, True
    assert [*islice(later, 10)] == expected[990:]
    assert seeded == [(1, 0)]


@pytest.mark.core
def test_a_loader_draws_nothing_from_the_training():
    """A hook finds in it what it finds in mmengine's."""
    stock = DataLoader(AugmentedDataset(5), 2, drop_last=True)
    vars(stock)['in_order'] = False  # batches could not be counted
    loader = ResumableLoader.of(stock, 0)
    before = torch.get_rng_state()
    assert loader.in_order and len(loader) == len([*loader]) == 2
    assert torch.equal(torch.get_rng_state(), before)
    for name in ('dataset', 'sampler', 'batch_sampler', 'drop_last'):
        assert getattr(loader, name) is getattr(stock, name)


class Opened(list):
    """What a worker has opened, as h5py needs it."""

    def __getitem__(self, i):
        return f'{self.file} {type(get_worker_info().dataset).__name__}'


def open_file(number):
    get_worker_info().dataset.file = number


@pytest.mark.core
def test_a_worker_finds_the_dataset():
    loader = DataLoader(Opened('ab'), num_workers=1, worker_init_fn=open_file)
    assert [*ResumableLoader.of(loader, 0)] == [['0 Opened']] * 2


@pytest.mark.parametrize('by_epoch, left', [
    (True, 3 * SIZE),  # the epoch begins anew, as under mmengine
    (False, (33 - 5) * 3)])
def test_a_checkpoint_of_mmengine_is_taken_with_a_warning(
        tmp_path, by_epoch, left):
    settings = dict(by_epoch=by_epoch, interval=5,
                    checkpoint=dict(type='CheckpointHook'))
    train(tmp_path, 7, **settings)
    logged, runner = resumed(tmp_path, **settings)
    assert seen(runner) == left
    assert any('no training state' in line for line in logged)


def accumulating(counts):
    return dict(optim_wrapper=dict(
        accumulative_counts=counts, optimizer=dict(type='SGD', lr=.01)))


@pytest.mark.parametrize('by_epoch, loader, changed, left', [
    (True, dict(batch_size=6), 'batch_size was 3 and is 6; accumulative_counts'
     ' was 2 and is 4', 3 * SIZE - 24),
    # The epoch is through.
    (True, dict(dataset=dict(type='AugmentedDataset', size=9)),
     'samples was 32 and is 9', 2 * 9),
    (False, dict(batch_size=6), 'batch_size was 3 and is 6', (33 - 8) * 6)])
def test_other_data_go_on_after_as_many_samples(tmp_path, by_epoch, loader,
                                                changed, left):
    train(tmp_path, 8, by_epoch=by_epoch, **accumulating(2))
    logged, runner = resumed(tmp_path, by_epoch=by_epoch, loader=loader,
                             **accumulating(4))
    assert any(changed in line for line in logged)
    assert seen(runner) == left
    assert not by_epoch or runner.iter == 3 * len(runner.train_dataloader)


def test_mmdets_samplers_of_several_sources_have_a_list(tmp_path):
    loop = resume_runner(tmp_path).train_loop
    loop.dataloader.batch_sampler.batch_size = [1, 4]
    assert loop.progress()['batch_size'] == 5


@pytest.mark.parametrize('settings, loader', [
    (FINITE, dict(batch_size=64, drop_last=True)),
    (ITERATIONS, dict(dataset=dict(type='AugmentedDataset', size=0)))])
def test_what_cannot_be_trained_is_an_error(tmp_path, settings, loader):
    with pytest.raises(ValueError, match='expected batches, got none'):
        train(tmp_path, loader=loader, **settings)
    with pytest.raises(ValueError, match='dataset without indices'):
        ResumableLoader.of(DataLoader(ChainDataset([])), 0)


@pytest.mark.core
def test_each_rank_goes_on_as_itself(tmp_path):
    """With random numbers, averages and averaged buffers of its own.

    Validation uses the buffers, and the best checkpoint depends on it.
    """
    settings = dict(ema=dict(update_buffers=True), interval=4)
    whole = train_on_ranks(2, tmp_path / 'whole', **settings)
    train_on_ranks(2, tmp_path / 'b', hooks=[dict(type='StopHook', at=14)],
                   **settings)
    ends = train_on_ranks(2, tmp_path / 'b', resume=True, **settings)
    # The message hub is the first rank's, which alone logs.
    del whole[1]['scalars'], ends[1]['scalars']
    assert_same(whole, ends)
    name = 'layers.1.running_mean'
    means = [state['model'][f'module.{name}'] for state in ends]
    assert not torch.equal(*means)


def test_two_ranks_go_on_as_one(tmp_path):
    train_on_ranks(2, tmp_path, hooks=[dict(type='StopHook', at=5)])
    logged, runner = resumed(tmp_path, interval=1000)
    assert any('world_size was 2 and is 1' in line for line in logged)
    # 5 batches of 2 x 3 samples are 10 of this one rank's.
    assert seen(runner) == 3 * SIZE - 30
    assert runner.iter == 33


def load_six(runner):
    loader = runner.train_dataloader
    runner.train_loop.dataloader = DataLoader(
        loader.dataset, 6, collate_fn=loader.collate_fn)


def test_a_hook_may_replace_the_loader_and_its_batches(tmp_path):
    batches = Counter()

    def replace(runner):
        if runner.epoch == 1:
            vars(runner.train_dataloader)['batch_sampler'] = BatchSampler(
                range(SIZE), 2, drop_last=False)
        if runner.epoch == 2:
            load_six(runner)

    train(tmp_path, on=dict(
        before_train_epoch=replace, after_train_iter=lambda runner, *_, **__: (
            batches.update([runner.epoch]))))
    assert batches == {0: 11, 1: 16, 2: 6}


def test_a_hook_may_wrap_the_iterator_of_batches(tmp_path, whole):
    batches = []

    def wrap(runner):
        runner.train_loop.dataloader_iterator = (
            batches.append(batch) or batch
            for batch in runner.train_loop.dataloader_iterator)

    train(tmp_path, 15, interval=4, **ITERATIONS)
    runner = train(tmp_path, resume=True, on=dict(before_train=wrap),
                   **ITERATIONS)
    assert_same(whole(**ITERATIONS), final_state(runner))
    assert len(batches) == 21


class Prefetcher:
    """An object around a loader, which is none itself."""

    def __init__(self, loader):
        self.loader, self.dataset = loader, loader.dataset

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        return iter(self.loader)


def prefetch(runner):
    runner.train_loop.dataloader = Prefetcher(runner.train_dataloader)


def validate(runner, *_, **__):
    runner.val_loop.run()


@pytest.mark.parametrize('kind, where, act, stop, at', [
    pytest.param(EPOCHS, 'before_train', prefetch, 'after_train_iter', 14,
                 marks=pytest.mark.core),
    (dict(checkpoint=dict(by_epoch=True)), 'after_train_epoch', validate,
     'before_val', 4)])
def test_what_a_hook_does_is_the_same_after_a_resume(
        tmp_path, kind, where, act, stop, at):
    """A loader's place is not lost, nor a validation, nor the seed drawn.

    The config of the resumed run says None again, and draws another one.
    """
    settings, drawn = dict(kind, on={where: act}), dict(seed=None)
    whole = train(tmp_path / 'whole', randomness=drawn, **settings)
    train(tmp_path, at, stop, randomness=dict(seed=whole.seed), **settings)
    ending = train(tmp_path, resume=True, randomness=drawn, **settings)
    assert_same(final_state(whole), final_state(ending))


def test_a_hook_may_pass_over_the_data(tmp_path, whole):
    """Once, though the training never ends, and the batches go on."""
    passes = []
    runner = train(tmp_path, workers=1, **FINITE, on=dict(
        after_train_iter=lambda runner, *_, **__: runner.iter == 20
        and passes.append(len([*runner.train_dataloader]))))
    assert passes == [11]
    assert_same(whole(**FINITE), final_state(runner))


def setting(name, value):
    return lambda runner, *_, **__: setattr(runner.train_loop, name, value)


@pytest.mark.parametrize('kind, where, act, times', [
    (EPOCHS, 'after_train_epoch', setting('_max_epochs', 1), [1]),
    (EPOCHS, 'after_train_epoch', setting('val_begin', 3), [3]),
    (EPOCHS, 'after_train_epoch', validate, [0, 1, 1, 2, 2, 3]),
    (ITERATIONS, 'after_train_iter', setting('_max_iters', 11), [8, 11]),
    (ITERATIONS, 'before_train_iter', setting('dynamic_intervals', [20]),
     [20, 33])])
def test_a_hook_may_change_when_a_validation_comes(
        tmp_path, kind, where, act, times):
    """Or have one more."""
    came = []
    train(tmp_path, **kind, on={where: act, 'before_val': lambda runner: (
        came.append(runner.epoch if kind is EPOCHS else runner.iter))})
    assert came == times


def test_a_loader_that_begins_anew_is_said(tmp_path):
    settings = dict(on=dict(before_train=lambda runner: (
        load_six(runner), prefetch(runner))))
    train(tmp_path, 8, **settings)
    logged, _ = resumed(tmp_path, **settings)
    assert any('goes on at its first batch' in line for line in logged)
