"""How long a training takes, from a part of it."""
import json
import time
from types import SimpleNamespace

import pytest
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from mmengine.runner import (
    BaseLoop,
    EpochBasedTrainLoop,
    IterBasedTrainLoop,
)

from stepnet_mm.config import harden
from stepnet_mm.profiling import time_training
from stepnet_mm.profiling.training_time import count_validations

pytestmark = pytest.mark.core
TOOL = 'benchmarks/training_time'


@pytest.fixture
def slow_hook():
    """A hook that takes .05 s an iteration, and what it has seen."""
    seen = []

    class SlowHook(Hook):

        def after_train_iter(self, runner, *args, **kwargs):
            time.sleep(.05)
            seen.append('train')

        def after_val_iter(self, runner, *args, **kwargs):
            seen.append('val')

        def before_save_checkpoint(self, runner, checkpoint):
            seen.append('save')

    HOOKS.register_module(module=SlowHook)
    yield seen
    HOOKS.module_dict.pop('SlowHook')


def read(path, **changes):
    cfg = Config.fromfile(str(path))
    cfg.merge_from_dict(changes)
    return harden(cfg)


def test_a_part_of_a_training_is_timed(classifier, slow_hook, tmp_path):
    pytest.importorskip('mmpretrain')
    cfg = read(classifier, **{
        'custom_hooks': [dict(type='SlowHook')], 'train_cfg.max_epochs': 9,
        'train_cfg.val_interval': 2, 'train_dataloader.batch_size': 2,
        'val_dataloader.batch_size': 2, 'work_dir': str(tmp_path / 'work'),
        'default_hooks.checkpoint.out_dir': str(tmp_path / 'out'),
        'visualizer': dict(type='UniversalVisualizer', vis_backends=[
            dict(type='TensorboardVisBackend')])})
    found = time_training(cfg, 5)
    assert slow_hook.count('train') == 10 + 5
    assert slow_hook.count('val') == 2 + 2  # half of them warm up
    assert .05 < found.iteration and 0 < found.loading < found.iteration
    assert (found.iterations, found.timed, found.batch_size) == (36, 5, 2)
    assert (found.val_batches, found.validations) == (4, 5)
    assert found.training == found.iteration * 36
    assert found.seconds == found.training + found.val_batch * 20
    assert found.peak_memory > 1e7
    assert not (tmp_path / 'work').exists()
    assert not (tmp_path / 'out').exists()


def test_a_short_training_is_timed_whole_after_a_half(
        classifier, slow_hook, tmp_path):
    pytest.importorskip('mmpretrain')
    cfg = read(classifier, custom_hooks=[dict(type='SlowHook')],
               val_cfg=None, val_dataloader=None, val_evaluator=None,
               work_dir=str(tmp_path / 'work'))
    found = time_training(cfg, 50)
    assert (found.iterations, found.timed, found.validations) == (4, 2, 0)
    assert found.seconds == found.training >= .2
    assert 'val' not in slow_hook


def test_the_tool_says_and_writes_it(tool, detector, tmp_path, capsys):
    pytest.importorskip('mmdet')
    config, data = detector
    tool(TOOL, config, '--data-root', data, '--work-dir', tmp_path / 'work',
         '--iterations', 2, '--out', tmp_path / 'new/time.json',
         '--cfg-options',
         'train_dataloader.batch_sampler.type=AspectRatioBatchSampler')
    said = capsys.readouterr().out
    found = json.loads((tmp_path / 'new/time.json').read_text())
    assert found['iterations'] == 4 and found['timed'] == 2
    assert found['batch_size'] == 2
    assert found['seconds'] == pytest.approx(
        4 * found['iteration'] + found['validations'] * found['val_batches']
        * found['val_batch'])
    assert 'mean of 2; 4 iterations: 0:00:' in said
    assert 'validation: ' in said and '\nin all: 0:00:' in said
    assert found['device'] == 'cpu' and found['versions']['torch'] in said
    assert not (tmp_path / 'work').exists()


def loop_of(kind, last, begin, intervals):
    """A loop that has only its schedule."""
    loop = object.__new__(kind)
    loop.__dict__.update(_max_epochs=last, _max_iters=last, val_begin=begin)
    loop.dynamic_milestones, loop.dynamic_intervals = zip(*intervals)
    return loop


@pytest.mark.parametrize('last, begin, intervals, expected', [
    (164, 1, [(0, 1)], 164),
    (10, 1, [(0, 3)], 4),  # 3, 6, 9 and the last
    (10, 5, [(0, 3)], 3),
    (10, 11, [(0, 3)], 0),
    (10, 1, [(0, 5), (8, 1)], 5),  # 5, and from 7 on: 8 is up next
])
@pytest.mark.parametrize('kind', [EpochBasedTrainLoop, IterBasedTrainLoop])
def test_validations_are_counted_as_the_loops_do(
        kind, last, begin, intervals, expected):
    assert count_validations(loop_of(kind, last, begin, intervals)) == expected


def test_a_loop_of_another_kind_is_refused():
    loop = SimpleNamespace(__class__=BaseLoop)
    with pytest.raises(ValueError, match='train_cfg.type: expected a loop'):
        count_validations(loop)
