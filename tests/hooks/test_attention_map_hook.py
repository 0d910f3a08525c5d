import copy
import json
import os

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.registry import DATASETS
from ranks import run_on_ranks
from toy_run import VALIDATION, ToyDataset, toy_runner

from stepnet_mm.attention import read_attention_history

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


@pytest.mark.core
def test_training_is_bit_identical_with_the_hook(tmp_path):
    hooks = [dict(HOOK, figure_interval=2)]
    plain, watched = [
        train(tmp_path / name, some).model.state_dict()
        for name, some in dict(plain=[], watched=hooks).items()]
    assert all(torch.equal(plain[key], watched[key]) for key in plain)
    # Quadratic centres have moved: there is something to record.
    records = read_attention_history(tmp_path / 'watched')
    assert [record.iteration for record in records] == [0, 2, 4]
    maps = [record.layers[0].maps for record in records]
    assert not np.array_equal(maps[0], maps[-1])


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
    """A training's work dir, and its network."""
    folder = tmp_path_factory.mktemp('trained')
    runner = train(folder, [dict(HOOK, query=(4, 30), figure_interval=2)],
                   log_level='INFO')
    return folder, runner.model


def test_what_is_recorded_is_what_the_network_does(trained):
    folder, model = trained
    last = read_attention_history(folder)[-1]
    assert (last.iteration, last.samples, last.size) == (4, 3, [32, 32])
    assert [layer.name for layer in last.layers] == [
        f'backbone.layers.{i}.attn' for i in (0, 1)]
    attn = model.backbone.layers[0].attn
    # By position alone, so that the input does not count.
    want = attn.attention(torch.zeros(1, 12, 16, 16), (2, 15))[0]
    np.testing.assert_allclose(last.layers[0].maps, want, rtol=1e-5)
    assert not any(m._forward_pre_hooks for m in model.modules())


def test_distances_go_to_log_and_back_ends(trained):
    folder, _ = trained
    path, = folder.glob('*/vis_data/attention.json')
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row['step'] for row in rows] == [0, 2, 4]
    record = read_attention_history(folder)[1]
    name = 'attention/backbone.layers.1.attn'
    assert [rows[1][f'{name}/head{i}'] for i in (1, 2, 3)] == pytest.approx(
        record.layers[1].distance)
    assert rows[1][name] == pytest.approx(np.mean(record.layers[1].distance))
    log, = folder.glob('*/*.log')
    assert 'Iter(train) [2/4]  mean attention distance (px)  backbone.' in (
        log.read_text())


def test_figures(trained):
    import cv2
    pictures = sorted(trained[0].glob('*/vis_data/vis_image/**/*.png'))
    # Of three measurements the second, and the last.
    assert [path.stem for path in pictures] == [
        f'attention_{name}_{step}' for name in ('maps', 'paths', 'range')
        for step in (2, 4)]
    assert all(cv2.imread(str(path)).std() > 5 for path in pictures)


def test_a_resumed_run_goes_on(tmp_path):
    train(tmp_path / 'whole', [HOOK], 8)
    train(tmp_path / 'cut', [HOOK])
    train(tmp_path / 'cut', [HOOK], 8, resume=True)
    assert not list(tmp_path.rglob('*.png')), 'figure_interval=0'
    found, want = [read_attention_history(tmp_path / name)
                   for name in ('cut', 'whole')]
    assert [r.iteration for r in found] == [r.iteration for r in want] == [
        0, 2, 4, 6, 8]
    for i, (one, other) in enumerate(zip(found, want)):
        assert one.view == other.view
        # mmengine's own loop draws other data after a resume.
        for layer, same in zip(one.layers, other.layers) if i < 3 else ():
            np.testing.assert_array_equal(layer.maps, same.maps)


@pytest.mark.long
@pytest.mark.parametrize('broken, change, line, pictures', [
    (False, dict(query=(1, 2)), '3 earlier records', 6),  # of 0, 2 and 4
    (True, {}, 'only the newest', 6)])
def test_records_that_cannot_be_drawn_with_the_newest(
        tmp_path, monkeypatch, broken, change, line, pictures):
    train(tmp_path, [HOOK])
    if broken:
        next(tmp_path.rglob('attention_00000002.npz')).write_bytes(b'cut')
    runner = toy_runner(
        tmp_path, [dict(HOOK, figure_interval=1, **change)], 8,
        dict(BACKBONE), resume=True, **copy.deepcopy(VALIDATION))
    said = []
    monkeypatch.setattr(runner.logger, 'warning', said.append)
    runner.train()
    assert any(line in text for text in said)
    assert runner.iter == 8
    assert len(list(tmp_path.glob('*/vis_data/vis_image/**/*.png'))) == (
        pictures)


@DATASETS.register_module()
class NumpyDataset(ToyDataset):
    """Its images depend on numpy's generator."""

    def __getitem__(self, i):
        return dict(inputs=torch.from_numpy(
            np.random.standard_normal((3, 32, 32)).astype('float32')))


@pytest.mark.parametrize('hook', [
    HOOK, dict(type='TNSHook', interval=2, probe=dict(num_samples=3))])
def test_a_loader_of_its_own_draws_nothing_from_the_training(tmp_path, hook):
    loader = copy.deepcopy(VALIDATION['val_dataloader'])
    loader['sampler'] = dict(type='InfiniteSampler')  # draws its seed
    loader['dataset'] = dict(type='NumpyDataset')
    hook = dict(hook, probe=dict(num_samples=3, dataloader=loader))
    data = dict(
        dataset=dict(type='NumpyDataset'),
        sampler=dict(type='InfiniteSampler', seed=0),
        batch_size=4,
        num_workers=0)
    plain, watched = [
        train(tmp_path / name, some, train_dataloader=data).model.state_dict()
        for name, some in dict(plain=[], watched=[hook]).items()]
    assert all(torch.equal(plain[key], watched[key]) for key in plain)


@pytest.mark.parametrize('hooks, backbone, match', [
    ([HOOK], dict(type='mmpretrain.StepResNet', depth=18),
     'no RelativeSelfAttention2d'),
    ([dict(HOOK, layers='nothing')], BACKBONE, 'none that .nothing. matches'),
    ([HOOK, HOOK], BACKBONE, 'AttentionMapHook.name'),
    ([dict(HOOK, query=(40, 0))], BACKBONE, r'query: .*\(32, 32\) px, got'),
    ([dict(HOOK, probe=dict(num_samples=0))], BACKBONE, 'num_samples')])
def test_what_cannot_be_recorded_fails_before_training(tmp_path, hooks,
                                                       backbone, match):
    runner = toy_runner(tmp_path, copy.deepcopy(hooks), 10, dict(backbone),
                        **copy.deepcopy(VALIDATION))
    with pytest.raises(ValueError, match=match):
        runner.train()
    assert runner.iter == 0


def _train_rank(rank, rendezvous, folder, hooks, results):
    torch.set_num_threads(1)
    os.environ['LOCAL_RANK'] = str(rank)  # of the forked process alone
    torch.distributed.init_process_group(
        'gloo', init_method=f'file://{rendezvous}', rank=rank, world_size=2)
    try:
        runner = train(folder, hooks, launcher='pytorch',
                       cfg=Config(dict(model_wrapper_cfg=dict(
                           type='MMDistributedDataParallel',
                           device_ids=None))))
        results[rank] = runner.model.module.state_dict()
    except ValueError as error:
        results[rank] = str(error)


def train_two(folder, hooks):
    results = torch.multiprocessing.get_context('fork').Manager().dict()
    run_on_ranks(
        _train_rank, (folder / 'meet', folder / 'run', hooks, results), 2)
    return [results[0], results[1]]


def test_two_processes_leave_one_set_of_records(tmp_path):
    (tmp_path / 'plain').mkdir()
    want = train_two(tmp_path / 'plain', [])[0]
    for found in train_two(tmp_path, [HOOK]):
        assert all(torch.equal(found[key], want[key]) for key in want)
    records = read_attention_history(tmp_path / 'run')
    assert [r.iteration for r in records] == [0, 2, 4]
    assert len(list((tmp_path / 'run').rglob('*.npz'))) == 3


@pytest.mark.long
def test_both_processes_see_an_error(tmp_path):
    for said in train_two(tmp_path, [dict(HOOK, query=(99, 0))]):
        assert 'px, got (99, 0)' in said
