import copy
import json

import numpy as np
import pytest
import torch
from ranks import results_of_ranks
from resume_run import assert_same
from toy_run import DDP, VALIDATION, toy_runner

from stepnet_mm.attention import read_attention_history, save_attention
from stepnet_mm.hooks import AttentionMapHook
from stepnet_mm.hooks import attention_map_hook as module
from stepnet_mm.utils.random_state import get_random_state

# One worker: what these tests share is made once.
pytestmark = pytest.mark.xdist_group('attention_map_hook')

pytest.importorskip('mmpretrain')
BACKBONE = dict(type='mmpretrain.SelfAttentionNet', embed_dims=12,
                num_layers=2, num_heads=3, feedforward_channels=8)
HOOK = dict(type='AttentionMapHook', interval=2, by_epoch=False,
            figure_interval=0, probe=dict(num_samples=3))


def train(folder, hooks, iterations=4, backbone=BACKBONE, **settings):
    runner = toy_runner(
        folder, copy.deepcopy(hooks), iterations, copy.deepcopy(backbone),
        **{**copy.deepcopy(VALIDATION), **settings})
    runner.train()
    return runner


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
    """A training's work dir, and its network."""
    folder = tmp_path_factory.mktemp('trained')
    runner = train(folder, [dict(HOOK, query=(4, 30), figure_interval=2)],
                   log_level='INFO')
    return folder, runner.model


@pytest.mark.core
def test_training_is_bit_identical_with_the_hook(trained, tmp_path):
    plain = train(tmp_path, []).model.state_dict()
    watched = trained[1].state_dict()
    assert all(torch.equal(plain[key], watched[key]) for key in plain)


def test_what_is_recorded_is_what_the_network_does(trained):
    folder, model = trained
    first, middle, last = read_attention_history(folder)
    assert (last.iteration, last.samples, last.size) == (4, 3, [32, 32])
    # Quadratic centres have moved: there is something to record.
    assert not np.array_equal(first.layers[0].maps, last.layers[0].maps)
    # By position alone, so that the input does not count.
    want = model.backbone.layers[0].attn.attention(
        torch.zeros(1, 12, 16, 16), (2, 15))[0]
    np.testing.assert_allclose(last.layers[0].maps, want, rtol=1e-5)
    assert not any(m._forward_pre_hooks for m in model.modules())
    path, = folder.glob('*/vis_data/attention.json')
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row['step'] for row in rows] == [0, 2, 4]
    name, (_, layer) = 'attention/backbone.layers.1.attn', middle.layers
    assert [rows[1][f'{name}/head{i}'] for i in (1, 2, 3)] == pytest.approx(
        layer.distance)
    assert rows[1][name] == pytest.approx(np.mean(layer.distance))
    log, = folder.glob('*/*.log')
    assert 'Iter(train) [2/4]  mean attention distance' in log.read_text()


def pictures(folder):
    return sorted(folder.glob('*/vis_data/vis_image/**/*.png'))


def test_figures(trained):
    # Of three measurements the second, and the last.
    assert [path.stem for path in pictures(trained[0])] == [
        f'attention_{name}_{step}' for name in ('maps', 'paths', 'range')
        for step in (2, 4)]


def test_a_resumed_run_goes_on(tmp_path):
    """With another query, and where a record cannot be drawn."""
    train(tmp_path, [HOOK])
    assert not pictures(tmp_path), 'figure_interval=0'
    before = read_attention_history(tmp_path)
    settings = dict(HOOK, figure_interval=1, query=(1, 2))
    train(tmp_path, [settings], 6, resume=True)
    records = read_attention_history(tmp_path)
    assert [r.iteration for r in records] == [0, 2, 4, 6]
    assert [r.view for r in records[:3]] == [r.view for r in before]
    assert len(pictures(tmp_path)) == 3
    next(tmp_path.rglob('attention_00000002.npz')).write_bytes(b'cut')
    assert train(tmp_path, [settings], 8, resume=True).iter == 8
    assert len(pictures(tmp_path)) == 3


def test_a_loader_of_its_own_draws_nothing_from_the_training(tmp_path):
    loader = copy.deepcopy(VALIDATION['val_dataloader'])
    loader['sampler'] = dict(type='InfiniteSampler')  # draws its seed
    runner = toy_runner(tmp_path, [], 1, copy.deepcopy(BACKBONE))
    hook = AttentionMapHook(probe=dict(num_samples=3, dataloader=loader),
                            by_epoch=False)
    assert runner.train_loop
    before = get_random_state()
    hook.before_train(runner)
    assert_same(before, get_random_state())


def test_what_cannot_be_recorded_fails_before_training(tmp_path):
    with pytest.raises(ValueError, match='no RelativeSelfAttention2d'):
        train(tmp_path, [HOOK], backbone=dict(
            type='mmpretrain.StepResNet', depth=18))


def test_of_two_processes_one_writes_and_both_see_an_error(tmp_path,
                                                           monkeypatch):
    saved = []
    monkeypatch.setattr(module, 'save_attention', lambda record, path: (
        saved.append(record.iteration), save_attention(record, path)))

    def run(rank):
        model = train(tmp_path, [HOOK], **DDP).model
        with pytest.raises(ValueError, match=r'px, got \(99, 0\)'):
            train(tmp_path, [dict(HOOK, query=(99, 0))], **DDP)
        return saved, model.module.state_dict()

    (first, state), (second, other) = results_of_ranks(run)
    assert (first, second) == ([0, 2, 4], [])
    assert all(torch.equal(state[key], other[key]) for key in state)
