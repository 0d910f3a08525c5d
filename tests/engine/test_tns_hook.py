import json
import math

import pytest
import torch
from toy_run import toy_runner

from stepnet_mm.engine import TNSHook
from stepnet_mm.engine.tns_hook import measure
from stepnet_mm.stiffness import total_neural_stiffness

pytestmark = pytest.mark.core
pytest.importorskip('mmpretrain')
STAGE = torch.tensor([1, 1, 2])
GROUP = 'stiffness/'


def scalars(work_dir):
    path, = work_dir.glob('*/vis_data/scalars.json')
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_measure_is_the_mean_over_samples():
    nsi = torch.rand(5, 3, dtype=torch.float64)
    out = measure(nsi, STAGE)
    assert math.isclose(out['tns'],
                        total_neural_stiffness(nsi, STAGE).mean().item())
    assert math.isclose(out['nsi_stage1_mean'], nsi[:, :2].mean().item())
    assert out['nsi_stage1_max'] == nsi[:, :2].max().item()
    assert math.isclose(out['nsi_stage2_mean'], nsi[:, 2].mean().item())
    assert out['nonfinite'] == 0


def test_measure_leaves_out_and_counts_what_is_not_finite():
    nsi = torch.rand(5, 3)
    broken = torch.cat([nsi, nsi[:2].clone()])
    broken[5, 0], broken[6, 2] = math.inf, math.nan
    expected, out = measure(nsi, STAGE), measure(broken, STAGE)
    assert out.pop('nonfinite') == 2 and expected.pop('nonfinite') == 0
    assert out == pytest.approx(expected)


def test_a_batch_of_nothing_finite_gives_the_count_alone():
    assert measure(torch.full((3, 3), math.inf), STAGE) == {'nonfinite': 3}


def _measure_on_a_rank(rank, rendezvous, parts, results):
    torch.distributed.init_process_group(
        'gloo', init_method=f'file://{rendezvous}', rank=rank,
        world_size=len(parts))
    results[rank] = measure(parts[rank], STAGE)


@pytest.mark.parametrize('sizes', [(3, 2), (5, 0)])
def test_ranks_give_the_numbers_of_one_process(tmp_path, sizes):
    nsi = torch.rand(5, 3, dtype=torch.float64)
    nsi[1, 1] = math.inf
    manager = torch.multiprocessing.get_context('fork').Manager()
    results = manager.dict()
    torch.multiprocessing.start_processes(
        _measure_on_a_rank, (tmp_path / 'meet', nsi.split(sizes), results),
        nprocs=2,
        start_method='fork')
    expected = measure(nsi, STAGE)
    for rank in range(2):
        assert results[rank] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize('interval', [0, -1, 2.5, None])
def test_wrong_interval(interval):
    with pytest.raises(ValueError, match='TNSHook.interval'):
        TNSHook(interval)


def test_training_is_bit_identical_with_the_hook(tmp_path):
    weights = []
    for name, hooks in dict(
            without=[], with_it=[dict(type='TNSHook', interval=3)]).items():
        runner = toy_runner(tmp_path / name, hooks)
        weights.append(runner.train().state_dict())
    assert all(torch.equal(weights[0][k], weights[1][k]) for k in weights[0])


def test_logged_once_where_it_was_measured(tmp_path):
    runner = toy_runner(tmp_path, [dict(type='TNSHook', interval=7)])
    runner.train()
    rows = [row for row in scalars(tmp_path) if f'{GROUP}tns' in row]
    assert [row['step'] for row in rows] == [7, 14]
    assert rows[0][f'{GROUP}tns'] != rows[1][f'{GROUP}tns']
    assert {f'{GROUP}nsi_stage{s}_{k}' for s in (1, 2, 3, 4)
            for k in ('mean', 'max')} <= set(rows[0])
    assert rows[0][f'{GROUP}nonfinite'] == 0
    others = [row for row in scalars(tmp_path) if row not in rows]
    assert others and not any(GROUP in key for row in others for key in row)


def test_it_goes_to_the_log_line(tmp_path):
    runner = toy_runner(
        tmp_path, [dict(type='TNSHook', interval=10)], log_level='INFO')
    runner.train()
    log, = tmp_path.glob('*/*.log')
    lines = [line for line in log.read_text().splitlines() if 'tns: ' in line]
    assert len(lines) == 2 and '[10/20]' in lines[0]
    assert 'nsi_stage4_max: ' in lines[0] and 'nonfinite: 0' in lines[0]


def test_it_goes_to_tensorboard(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import \
        EventAccumulator
    toy_runner(tmp_path, [dict(type='TNSHook', interval=5)]).train()
    folder, = tmp_path.glob('*/vis_data')
    events = EventAccumulator(str(folder)).Reload()
    recorded = events.Scalars(f'{GROUP}tns')
    assert [event.step for event in recorded] == [5, 10, 15, 20]
    local = [row[f'{GROUP}tns'] for row in scalars(tmp_path)
             if f'{GROUP}tns' in row]
    assert [event.value for event in recorded] == pytest.approx(local)


def test_a_compiled_train_step_is_refused(tmp_path):
    runner = toy_runner(tmp_path, [dict(type='TNSHook')])
    runner.cfg.compile = True
    hook, = [h for h in runner.hooks if isinstance(h, TNSHook)]
    with pytest.raises(ValueError, match='compile=False'):
        hook.before_train(runner)


def test_a_backbone_that_was_not_called_is_said_not_logged(
        tmp_path, monkeypatch):
    runner = toy_runner(tmp_path, [], iterations=1)
    said, written = [], []
    monkeypatch.setattr(runner.logger, 'warning', said.append)
    monkeypatch.setattr(runner.visualizer, 'add_scalars',
                        lambda *a, **k: written.append(a))
    hook = TNSHook(interval=1)
    runner.train_loop.dataloader = None
    hook.before_train_iter(runner, 0)
    hook.after_train_iter(runner, 0)
    assert 'was not called' in said[0] and not written


def test_hooks_left_by_an_exception_go_at_the_next_iteration(tmp_path):
    runner = toy_runner(tmp_path, [])
    hook = TNSHook(interval=1)
    hook.before_train_iter(runner, 0)
    hook.interval = 1000
    hook.before_train_iter(runner, 1)
    assert not any(m._forward_hooks for m in runner.model.modules())


def test_hooks_are_gone_after_a_measurement(tmp_path):
    runner = toy_runner(tmp_path, [dict(type='TNSHook', interval=20)])
    runner.train()
    assert not any(m._forward_hooks or m._forward_pre_hooks
                   for m in runner.model.modules())


def test_a_model_without_blocks_fails_before_training(tmp_path):
    backbone = dict(type='Conv2d', in_channels=3, out_channels=3,
                    kernel_size=1)
    from mmengine.registry import MODELS
    if 'Conv2d' not in MODELS:
        import mmcv.cnn  # noqa: F401
    runner = toy_runner(tmp_path, [dict(type='TNSHook')], backbone=backbone)
    with pytest.raises(ValueError, match='no residual block'):
        runner.train()
    assert runner.iter == 0


def test_one_measured_block_a_stage_is_warned_of(tmp_path, monkeypatch):
    backbone = dict(type='mmpretrain.StepResNet', depth=18, base_channels=8,
                    stem_channels=8)
    runner = toy_runner(
        tmp_path, [dict(type='TNSHook', interval=1)], 1, backbone)
    said = []
    monkeypatch.setattr(runner.logger, 'warning', said.append)
    runner.train()
    assert any('TNS is 0 by definition' in line for line in said)
