import re

import numpy as np
import pytest
import torch
from ranks import results_of_ranks
from resume_run import assert_same
from toy_run import DDP, VALIDATION, scalars, toy_runner

from stepnet_mm.attention import read_attention_history, save_attention
from stepnet_mm.hooks import AttentionMapHook
from stepnet_mm.hooks import attention_map_hook as module
from stepnet_mm.utils.random_state import get_random_state

# One worker: what these tests share is made once.
pytestmark = pytest.mark.xdist_group('attention_map_hook')

BACKBONE = dict(type='mmpretrain.SelfAttentionNet', embed_dims=12,
                num_layers=2, num_heads=3, feedforward_channels=8)
HOOK = dict(type='AttentionMapHook', interval=2, by_epoch=False,
            query=(4, 30), probe=dict(num_samples=3))


def train(folder, hooks, iterations=4, **settings):
    runner = toy_runner(folder, hooks, iterations, BACKBONE,
                        **{**VALIDATION, **settings})
    runner.train()
    return runner


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
    """A training's work dir, and its network."""
    folder = tmp_path_factory.mktemp('trained')
    return folder, train(folder, [HOOK], log_level='INFO').model


@pytest.mark.core
def test_training_is_bit_identical_with_the_hook(trained, tmp_path):
    assert_same(train(tmp_path, []).model.state_dict(),
                trained[1].state_dict())


def test_what_is_recorded_is_what_the_network_does(trained):
    folder, model = trained
    first, middle, last = read_attention_history(folder)
    assert (last.iteration, last.samples, last.size) == (4, 3, [32, 32])
    assert re.fullmatch(r'toy_[A-Za-z]+_\d+', last.name)  # no time in it
    # Quadratic centres have moved: there is something to record.
    assert not np.array_equal(first.layers[0].maps, last.layers[0].maps)
    # By position alone, so that the input does not count.
    want = model.backbone.layers[0].attn.attention(
        torch.zeros(1, 12, 16, 16), (2, 15))[0]
    np.testing.assert_allclose(last.layers[0].maps, want, rtol=1e-5)
    assert not any(m._forward_pre_hooks for m in model.modules())
    rows = scalars(folder, 'attention')
    assert [row['step'] for row in rows] == [0, 2, 4]
    name, (_, layer) = 'attention/backbone.layers.1.attn', middle.layers
    assert [rows[1][f'{name}/head{i}'] for i in (1, 2, 3)] == pytest.approx(
        layer.distance)
    assert rows[1][name] == pytest.approx(np.mean(layer.distance))
    log, = folder.glob('*/*.log')
    assert 'Iter(train) [2/4]  mean attention distance' in log.read_text()


def test_a_resumed_run_goes_on(tmp_path):
    train(tmp_path, [HOOK])
    train(tmp_path, [HOOK], 6, resume=True)
    assert [r.iteration for r in read_attention_history(tmp_path)] == [
        0, 2, 4, 6]


def test_a_loader_of_its_own_draws_nothing_from_the_training(tmp_path):
    loader = dict(VALIDATION['val_dataloader'], sampler=dict(
        type='InfiniteSampler'))  # draws its seed
    runner = toy_runner(tmp_path, [], 1, BACKBONE)
    hook = AttentionMapHook(probe=dict(num_samples=3, dataloader=loader),
                            by_epoch=False)
    assert runner.train_loop
    before = get_random_state()
    hook.before_train(runner)
    assert_same(before, get_random_state())


def test_of_two_processes_one_writes_and_both_see_an_error(tmp_path,
                                                           monkeypatch):
    saved = []
    monkeypatch.setattr(module, 'save_attention', lambda record, path: (
        saved.append(record.iteration), save_attention(record, path)))

    def run(rank):
        model = train(tmp_path, [HOOK], **DDP).model
        with pytest.raises(ValueError, match=r'query: .* got \('):
            train(tmp_path, [dict(HOOK, query=(99, 0))], **DDP)
        return saved, model.module.state_dict()

    (first, state), (second, other) = results_of_ranks(run)
    assert (first, second) == ([0, 2, 4], [])
    assert_same(state, other)
