import copy
import json
import math
import os

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS
from ranks import run_on_ranks
from torch import nn
from toy_run import VALIDATION, toy_runner

from stepnet_mm.hooks import TNSHook
from stepnet_mm.hooks.tns_hook import _gather
from stepnet_mm.stiffness import DEFINITIONS, summarize_stiffness

pytestmark = pytest.mark.core
pytest.importorskip('mmpretrain')
STAGE = torch.tensor([1, 1, 2])
GROUP = 'stiffness/'


def scalars(work_dir):
    path, = work_dir.glob('*/vis_data/scalars.json')
    return [json.loads(line) for line in path.read_text().splitlines()]


def _measure_on_a_rank(rank, rendezvous, parts, results):
    torch.distributed.init_process_group(
        'gloo', init_method=f'file://{rendezvous}', rank=rank,
        world_size=len(parts))
    results[rank] = summarize_stiffness(_gather(parts[rank]), STAGE)


@pytest.mark.parametrize('sizes', [(3, 2), (5, 0), (2, 1, 1, 1)])
def test_ranks_give_the_numbers_of_one_process(tmp_path, sizes):
    nsi = torch.rand(5, 3, dtype=torch.float64)
    nsi[1, 1] = math.inf
    manager = torch.multiprocessing.get_context('fork').Manager()
    results = manager.dict()
    run_on_ranks(
        _measure_on_a_rank, (tmp_path / 'meet', nsi.split(sizes), results),
        len(sizes))
    expected = summarize_stiffness(nsi, STAGE)
    for rank in range(len(sizes)):
        assert results[rank] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize('interval', [0, -1, 2.5, None])
def test_wrong_interval(interval):
    with pytest.raises(ValueError, match='TNSHook.interval'):
        TNSHook(interval)


def test_training_is_bit_identical_with_the_hook(tmp_path):
    hooks = [dict(type='TNSHook', interval=3, definition=key, name=key)
             for key in DEFINITIONS]
    expected = toy_runner(tmp_path / 'plain', (), 4).train().state_dict()
    for hook in hooks:
        runner = toy_runner(tmp_path / hook['name'], [hook], 4)
        found = runner.train().state_dict()
        assert all(torch.equal(found[key], expected[key]) for key in expected)


def test_logged_once_where_it_was_measured(tmp_path):
    runner = toy_runner(tmp_path, [dict(type='TNSHook', interval=7)])
    runner.train()
    rows = [row for row in scalars(tmp_path) if f'{GROUP}tns' in row]
    assert [row['step'] for row in rows] == [7, 14]
    assert rows[0][f'{GROUP}tns'] != rows[1][f'{GROUP}tns']
    assert {f'{GROUP}nsi_stage{s}_{k}' for s in (1, 2, 3, 4)
            for k in ('mean', 'max')} <= set(rows[0])
    for row in rows:
        assert 0 < row[f'{GROUP}tns_median'] <= row[f'{GROUP}tns_q95']
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
    assert 'tns_median: ' in lines[0] and 'tns_q95: ' in lines[0]
    assert 'nsi_stage4_max: ' in lines[0] and 'nonfinite: 0' in lines[0]


def test_it_goes_to_tensorboard(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import (
        EventAccumulator,
    )
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
    assert 'train_step' not in vars(runner.model)


def hook_count(model):
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks)
               for m in model.modules())


@pytest.mark.parametrize('name', ['batch', 'probe'])
def test_no_hook_is_left_when_the_forward_raises(tmp_path, name, monkeypatch):
    runner = toy_runner(tmp_path, [dict(HOOKS[name], interval=1)],
                        **copy.deepcopy(VALIDATION))
    seen = []

    def stop(*args):
        seen.append(hook_count(runner.model))
        raise KeyboardInterrupt

    monkeypatch.setattr(runner.model.backbone.layer3[1].conv2, 'forward',
                        stop)
    before = hook_count(runner.model)
    with pytest.raises(KeyboardInterrupt):
        if name == 'batch':
            runner.train()
        else:
            hook = hook_of(runner, 'probe')
            hook.before_train(runner)
            hook.after_train_iter(runner, 0)
    assert name == 'probe' or seen[0] > before
    assert hook_count(runner.model) == before


def test_hooks_are_gone_after_a_measurement(tmp_path):
    runner = toy_runner(tmp_path, [dict(type='TNSHook', interval=20)])
    runner.train()
    assert not any(m._forward_hooks or m._forward_pre_hooks
                   for m in runner.model.modules())


def test_a_model_without_blocks_fails_before_training(tmp_path):
    backbone = dict(type='Conv2d', in_channels=3, out_channels=3,
                    kernel_size=1)
    if 'Conv2d' not in MODELS:
        import mmcv.cnn  # noqa: F401
    runner = toy_runner(tmp_path, [dict(type='TNSHook')], backbone=backbone)
    with pytest.raises(ValueError, match='no residual block'):
        runner.train()
    assert runner.iter == 0


@MODELS.register_module()
class TwoStagesInOneContainer(nn.Module):
    """Which no regular expression tells apart."""

    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(*[
            nn.Sequential(nn.Conv2d(channels, channels, 1, stride),
                          nn.Conv2d(channels, channels, 1))
            for channels, stride in [(3, 1)] * 3 + [(3, 2)] + [(3, 1)] * 2])

    def forward(self, images):
        return [self.trunk(images)]


@pytest.mark.parametrize('name', ['batch', 'probe'])
def test_blocks_that_do_not_go_together_fail_at_once(tmp_path, name):
    hook = dict(copy.deepcopy(HOOKS[name]), interval=1000,
                blocks=r'backbone\.trunk\.\d')
    runner = toy_runner(tmp_path, [hook], 2,
                        dict(type='TwoStagesInOneContainer'),
                        **copy.deepcopy(VALIDATION))
    with pytest.raises(ValueError, match='trunk.3: expected'):
        runner.train()
    assert runner.iter == 0


def test_hooks_on_the_same_iterations_leave_nothing_behind(tmp_path):
    """Nor does the first iteration, which all of them try."""
    hooks = [dict(type='TNSHook', interval=2, name=name) for name in 'ab']
    runner = toy_runner(tmp_path, hooks, 4)
    forward, counts = runner.model.backbone.forward, []

    def counted(images):
        counts.append(hook_count(runner.model))
        return forward(images)

    runner.model.backbone.forward = counted
    runner.train()
    assert counts[0] == counts[1] == counts[3] > 0 == counts[2]
    assert 'train_step' not in vars(runner.model)
    first, second = (hook_of(runner, name).history(runner) for name in 'ab')
    assert first == second and [row['step'] for row in first] == [2, 4]


def test_one_measured_block_a_stage_is_warned_of(tmp_path, monkeypatch):
    backbone = dict(type='mmpretrain.StepResNet', depth=18, base_channels=8,
                    stem_channels=8)
    runner = toy_runner(
        tmp_path, [dict(type='TNSHook', interval=1)], 1, backbone)
    said = []
    monkeypatch.setattr(runner.logger, 'warning', said.append)
    runner.train()
    assert any('TNS is 0 by definition' in line for line in said)


HOOKS = dict(
    batch=dict(type='TNSHook', interval=5, figure_interval=2),
    probe=dict(type='TNSHook', interval=5, probe=dict(num_samples=6),
               name='probe'))


@pytest.mark.parametrize('names', [
    pytest.param(['batch'], marks=pytest.mark.long),
    pytest.param(['probe'], marks=pytest.mark.long), ['batch', 'probe']])
def test_training_is_bit_identical_with_any_hook(tmp_path, names):
    plain = toy_runner(tmp_path / 'plain', **copy.deepcopy(VALIDATION))
    expected = plain.train().state_dict()
    hooks = [copy.deepcopy(HOOKS[name]) for name in names]
    runner = toy_runner(
        tmp_path / 'watched', [*hooks, dict(type='TNSMetricHook')],
        **dict(copy.deepcopy(VALIDATION),
               val_evaluator=dict(type='TNSMetric')))
    found = runner.train().state_dict()
    assert all(torch.equal(found[key], expected[key]) for key in expected)


def hook_of(runner, name):
    return [h for h in runner.hooks
            if isinstance(h, TNSHook) and h.name == name][0]


def test_the_history_is_in_the_checkpoint_and_goes_on(tmp_path):
    whole = toy_runner(tmp_path / 'whole', [dict(HOOKS['batch'])])
    whole.train()
    expected = hook_of(whole, 'stiffness').history(whole)
    assert [row['step'] for row in expected] == [5, 10, 15, 20]
    toy_runner(tmp_path / 'cut', [dict(HOOKS['batch'])], 10).train()
    runner = toy_runner(tmp_path / 'cut', [dict(HOOKS['batch'])], resume=True)
    runner.train()
    found = hook_of(runner, 'stiffness').history(runner)
    assert [row['step'] for row in found] == [5, 10, 15, 20]
    assert found[:2] == expected[:2]


def test_a_history_of_before_the_quantiles_goes_on_and_is_drawn(
        tmp_path, monkeypatch):
    toy_runner(tmp_path, [dict(HOOKS['batch'])], 10).train()
    path = tmp_path / 'iter_10.pth'
    checkpoint = torch.load(path, weights_only=False)
    for row in checkpoint['message_hub']['runtime_info'][
            'stiffness_history']:
        del row['tns_median'], row['tns_q95']
    torch.save(checkpoint, path)
    runner = toy_runner(tmp_path, [dict(HOOKS['batch'])], resume=True)
    drawn = []
    monkeypatch.setattr(runner.visualizer, 'add_image',
                        lambda name, *a, **k: drawn.append((name, k['step'])))
    runner.train()
    history = hook_of(runner, 'stiffness').history(runner)
    assert [row['step'] for row in history] == [5, 10, 15, 20]
    assert ['tns_q95' in row for row in history] == [False] * 2 + [True] * 2
    assert drawn == [('stiffness_nsi', 20), ('stiffness_curve', 20)]


def test_loading_weights_does_not_bring_a_history(tmp_path):
    toy_runner(tmp_path / 'first', [dict(HOOKS['batch'])], 10).train()
    runner = toy_runner(
        tmp_path / 'second', [dict(HOOKS['batch'])], 5,
        load_from=str(tmp_path / 'first' / 'iter_10.pth'))
    runner.train()
    history = hook_of(runner, 'stiffness').history(runner)
    assert [row['step'] for row in history] == [5]


def test_the_probe_shows_the_network_alone(tmp_path):
    """Two measurements of unchanged weights are the same."""
    settings = copy.deepcopy(VALIDATION)
    runner = toy_runner(
        tmp_path, [dict(HOOKS['probe'], interval=1)], 2,
        dict(type='mmpretrain.StepResNet', depth=34, base_channels=8,
             stem_channels=8, zero_init_residual=False), **settings,
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.)))
    for module in runner.model.modules():  # or they would learn statistics
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = 0.
    runner.train()
    first, second = hook_of(runner, 'probe').history(runner)
    assert first.pop('step') == 1 and second.pop('step') == 2
    assert first == second and first['tns'] > 0


def test_a_changed_probe_is_said_after_a_resume(tmp_path, monkeypatch):
    toy_runner(tmp_path, [dict(HOOKS['probe'])], 10,
               **copy.deepcopy(VALIDATION)).train()
    runner = toy_runner(
        tmp_path, [dict(HOOKS['probe'], probe=dict(num_samples=5))],
        resume=True, **copy.deepcopy(VALIDATION))
    said = []
    monkeypatch.setattr(runner.logger, 'warning', said.append)
    runner.train()
    assert any("'samples': 6" in line and "'samples': 5" in line
               for line in said)
    history = hook_of(runner, 'probe').history(runner)
    assert [row['step'] for row in history] == [15, 20]


def test_another_definition_begins_a_new_history(tmp_path, monkeypatch):
    toy_runner(tmp_path, [dict(HOOKS['batch'])], 10).train()
    runner = toy_runner(
        tmp_path, [dict(HOOKS['batch'], definition='output')], resume=True)
    said = []
    monkeypatch.setattr(runner.logger, 'warning', said.append)
    runner.train()
    assert any("['residual'] as ['definition']" in line for line in said)
    history = hook_of(runner, 'stiffness').history(runner)
    assert [row['step'] for row in history] == [15, 20]


def test_by_epoch_needs_epochs(tmp_path):
    with pytest.raises(ValueError, match='TNSHook.by_epoch'):
        toy_runner(tmp_path, [dict(HOOKS['batch'], by_epoch=True)]).train()


def test_a_probe_without_data_to_take_is_refused(tmp_path):
    with pytest.raises(ValueError, match='expected a val_dataloader'):
        toy_runner(tmp_path, [dict(HOOKS['probe'])]).train()


def test_a_probe_with_a_dataloader_of_its_own(tmp_path):
    probe = dict(dataloader=VALIDATION['val_dataloader'], num_samples=3)
    runner = toy_runner(
        tmp_path, [dict(HOOKS['probe'], probe=copy.deepcopy(probe))])
    runner.train()
    assert len(hook_of(runner, 'probe').history(runner)) == 4


def test_a_compiled_train_step_may_have_a_probe(tmp_path):
    runner = toy_runner(tmp_path, [dict(HOOKS['probe'])],
                        **copy.deepcopy(VALIDATION))
    runner.cfg.compile = True
    hook_of(runner, 'probe').before_train(runner)


@pytest.mark.parametrize('name, due', [('batch', [8, 16]), ('probe', [8, 16])])
def test_by_epoch(tmp_path, name, due):
    settings = dict(
        copy.deepcopy(VALIDATION),
        train_cfg=dict(by_epoch=True, max_epochs=5),
        log_processor=dict(by_epoch=True))
    settings['train_dataloader'] = dict(
        dataset=dict(type='ToyDataset'),
        sampler=dict(type='DefaultSampler', shuffle=True),
        batch_size=4,
        num_workers=0)
    hook = dict(HOOKS[name], interval=2, by_epoch=True)
    runner = toy_runner(tmp_path, [hook], **settings)
    runner.train()
    history = hook_of(runner, hook.get('name', 'stiffness')).history(runner)
    assert [row['step'] for row in history] == due


def test_figures_go_to_the_visualizer(tmp_path):
    import cv2
    from tensorboard.backend.event_processing.event_accumulator import (
        EventAccumulator,
    )
    toy_runner(tmp_path, [dict(HOOKS['batch'])]).train()
    pictures = sorted(tmp_path.glob('*/vis_data/vis_image/**/*.png'))
    assert len(pictures) == 4  # two measurements of two pictures
    assert all(cv2.imread(str(path)).std() > 5 for path in pictures)
    folder, = tmp_path.glob('*/vis_data')
    events = EventAccumulator(str(folder)).Reload()
    assert set(events.Tags()['images']) == {
        'stiffness_nsi', 'stiffness_curve'}


def test_no_figure_at_interval_zero(tmp_path):
    toy_runner(
        tmp_path, [dict(HOOKS['batch'], figure_interval=0)]).train()
    assert not list(tmp_path.glob('*/vis_data/vis_image/**/*.png'))


def test_blocks_degrees_and_names(tmp_path):
    hook = dict(
        type='TNSHook', interval=10, name='late', degrees=[(.1, .2)],
        blocks=r'backbone\.layer3\.\d', definition='output')
    toy_runner(tmp_path, [hook]).train()
    row = [row for row in scalars(tmp_path) if 'late/tns' in row][0]
    assert {key for key in row if key.startswith('late/nsi/')} == {
        f'late/nsi/backbone.layer3.{i}' for i in range(1, 6)}
    assert 0 <= row['late/proportion_0.1_0.2'] <= 1


def test_two_hooks_of_one_name_are_refused(tmp_path):
    hooks = [dict(type='TNSHook'), dict(type='TNSHook', interval=3)]
    with pytest.raises(ValueError, match='TNSHook.name'):
        toy_runner(tmp_path, hooks).train()


@pytest.mark.parametrize('wrong, message', [
    (dict(figure_interval=-1), 'figure_interval'),
    (dict(probe=dict(samples=3)), 'TNSHook.probe'),
    (dict(probe=5), 'TNSHook.probe'),
    (dict(degrees=[1]), 'TNSHook.degrees')])
def test_wrong_arguments(wrong, message):
    with pytest.raises(ValueError, match=message):
        TNSHook(**wrong)


def _train_rank(rank, rendezvous, folder, results):
    torch.set_num_threads(1)
    os.environ['LOCAL_RANK'] = str(rank)  # of the forked process alone
    torch.distributed.init_process_group(
        'gloo', init_method=f'file://{rendezvous}', rank=rank, world_size=2)
    hooks = [dict(HOOKS['batch']), dict(HOOKS['probe']),
             dict(type='TNSMetricHook')]
    runner = toy_runner(
        folder, hooks, 10, launcher='pytorch',
        cfg=Config(dict(model_wrapper_cfg=dict(
            type='MMDistributedDataParallel', device_ids=None))),
        **dict(copy.deepcopy(VALIDATION),
               val_evaluator=dict(type='TNSMetric')))
    runner.train()
    results[rank] = dict(
        wrapper=type(runner.model).__name__,
        hooks=hook_count(runner.model.module),
        rows=[hook_of(runner, name).history(runner)
              for name in ('stiffness', 'probe')],
        metrics=runner.val())


def test_two_processes_under_ddp(tmp_path):
    results = torch.multiprocessing.get_context('fork').Manager().dict()
    run_on_ranks(_train_rank, (tmp_path / 'meet', tmp_path, results), 2)
    first, second = results[0], results[1]
    assert first['wrapper'] == 'MMDistributedDataParallel'
    assert first['hooks'] == 0
    for batch in (0, 1):
        assert first['rows'][batch] == second['rows'][batch]
        assert [row['step'] for row in first['rows'][batch]] == [5, 10]
    assert first['metrics'] == second['metrics']
    assert first['metrics']['stiffness_eval/tns'] > 0
