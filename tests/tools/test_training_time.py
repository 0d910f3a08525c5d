"""How long a training takes, from a part of it."""
import json
import signal
from types import SimpleNamespace

import pytest
from mmcv.transforms import TRANSFORMS, BaseTransform
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.registry import HOOKS, VISBACKENDS
from mmengine.runner import (
    BaseLoop,
    EpochBasedTrainLoop,
    IterBasedTrainLoop,
)
from mmengine.visualization import LocalVisBackend

from stepnet_mm.config import harden
from stepnet_mm.profiling import time_training, training_time
from stepnet_mm.profiling.training_time import count_validations

TOOL = 'benchmarks/training_time'
#: In s: each of the first two iterations, which must not count, and of the
#: others; an image in its pipeline; the end of an epoch.
SLOW, REST, LOADS, EPOCH = 10., .1, .01, 1.


class Clock:
    """A time that passes where somebody says so."""

    def __init__(self):
        self.now = 0.

    def perf_counter(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """The time of what is tested: LOADS s an image pass in its pipeline."""
    clock = Clock()
    monkeypatch.setattr(training_time, 'time', clock)

    class Load(BaseTransform):

        def transform(self, results):
            clock.now += LOADS
            return results

    TRANSFORMS.register_module(module=Load)
    yield clock
    TRANSFORMS.module_dict.pop('Load')


@pytest.fixture
def seen(clock):
    """What a hook has seen, with which time passes in each iteration."""
    seen = []

    class SlowHook(Hook):

        def after_train_iter(self, runner, *args, **kwargs):
            seen.append('train')
            clock.now += SLOW if seen.count('train') <= 2 else REST
            if seen.count('train') == runner.cfg.get('stop_after'):
                runner.train_loop.stop_training = True

        def after_train_epoch(self, runner):
            clock.now += EPOCH

        def after_val_iter(self, runner, *args, **kwargs):
            seen.append('val')
            clock.now += SLOW if seen.count('val') <= 2 else REST

        def after_train(self, runner):
            seen.append('end')

    class Elsewhere(LocalVisBackend):

        def _init_env(self):
            seen.append('sent')

    HOOKS.register_module(module=SlowHook)
    VISBACKENDS.register_module(module=Elsewhere)
    yield seen
    HOOKS.module_dict.pop('SlowHook')
    VISBACKENDS.module_dict.pop('Elsewhere')


@pytest.fixture
def read(classifier, tmp_path):
    """read(**changes): a config of 4 iterations an epoch."""
    pytest.importorskip('mmpretrain')

    def read(**changes):
        cfg = Config.fromfile(str(classifier))
        cfg.merge_from_dict({
            'custom_hooks': [dict(type='SlowHook')],
            'train_dataloader.batch_size': 2, 'val_dataloader.batch_size': 2,
            'work_dir': str(tmp_path / 'work'), **changes})
        for split in ('train', 'val'):
            if loader := cfg.get(f'{split}_dataloader'):
                loader.dataset.pipeline.insert(0, dict(type='Load'))
        return harden(cfg)

    return read


def test_a_part_of_a_training_is_timed(read, seen, tmp_path, monkeypatch):
    monkeypatch.setattr(training_time, 'WARM_ITERATIONS', 2)
    waited = []
    monkeypatch.setattr(training_time, 'synchronize', waited.append)
    before = [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGUSR1)]
    cfg = read(**{
        'train_cfg.max_epochs': 9, 'train_cfg.val_interval': 2,
        'default_hooks.checkpoint.out_dir': str(tmp_path / 'out'),
        'custom_hooks': [dict(type='SlowHook'), dict(type='PreemptionHook'),
                         dict(type='CheckpointHook', interval=1,
                              out_dir=str(tmp_path / 'more'))],
        'visualizer': dict(type='UniversalVisualizer', vis_backends=[
            dict(type='Elsewhere')], save_dir=str(tmp_path / 'pictures'))})
    found = time_training(cfg, 4)
    assert (seen.count('train'), seen.count('val')) == (2 + 4, 2 + 2)
    # The third of them begins an epoch: its wait, and the end of the one
    # before, are no loading, but they take their time.
    assert found.loading == pytest.approx(3 * 2 * LOADS / 4)
    assert found.iteration == pytest.approx(REST + 2 * LOADS + EPOCH / 4)
    assert found.validation == pytest.approx(4 * (REST + 2 * LOADS))
    assert (found.iterations, found.timed, found.batch_size) == (36, 4, 2)
    assert found.validations == 5 and found.peak_memory > 1e7
    assert found.seconds == pytest.approx(
        36 * found.iteration + 5 * found.validation)
    assert len(waited) == 4  # before and after what counts, twice
    # Hooks have ended, and nothing is left behind.
    assert seen.count('end') == 1
    assert before == [signal.getsignal(n)
                      for n in (signal.SIGTERM, signal.SIGUSR1)]
    assert 'sent' not in seen
    assert {path.name for path in tmp_path.iterdir()} == {
        'images', 'classifier.py'}


def test_what_loader_workers_have_ready_is_warm_up(read, seen, monkeypatch):
    monkeypatch.setattr(training_time, 'WARM_ITERATIONS', 1)
    found = time_training(read(**{
        'train_cfg.max_epochs': 9, 'train_dataloader.num_workers': 1,
        'train_dataloader.prefetch_factor': 3, 'val_cfg': None,
        'val_dataloader': None, 'val_evaluator': None}), 2)
    assert (seen.count('train'), seen.count('val')) == (1 + 3 + 2, 0)
    assert found.timed == 2 and found.validations == found.validation == 0


def test_a_training_without_a_batch_is_refused(read, seen):
    with pytest.raises(ValueError, match='train_dataloader: expected batch'):
        time_training(read(**{'train_dataloader.batch_size': 64,
                              'train_dataloader.drop_last': True}), 2)


def loop_of(kind, last, begin, intervals):
    """A loop that has only its schedule."""
    loop = object.__new__(kind)
    loop.__dict__.update(_max_epochs=last, _max_iters=last, val_begin=begin)
    loop.dynamic_milestones, loop.dynamic_intervals = zip(*intervals)
    return loop


@pytest.mark.core
@pytest.mark.parametrize('kind', [EpochBasedTrainLoop, IterBasedTrainLoop])
def test_validations_are_counted_as_the_loops_do(kind):
    for last, begin, intervals, expected in (
            (164, 1, [(0, 1)], 164),
            (10, 1, [(0, 3)], 4),  # 3, 6, 9 and the last
            (10, 0, [(0, 3)], 4),
            (10, 5, [(0, 3)], 3),
            (10, 11, [(0, 3)], 0),
            (10, 1, [(0, 5), (8, 1)], 5)):  # 5, and from 7 on: 8 is up next
        loop = loop_of(kind, last, begin, intervals)
        assert count_validations(loop) == expected


def test_a_loop_of_another_kind_is_refused():
    loop = SimpleNamespace(__class__=BaseLoop)
    with pytest.raises(ValueError, match='train_cfg.type: expected a loop'):
        count_validations(loop)


def test_the_tool_says_and_writes_it(tool, classifier, tmp_path, capsys,
                                     monkeypatch):
    pytest.importorskip('mmpretrain')
    monkeypatch.setattr('os.getloadavg', lambda: (1e3, 0, 0))
    changed = []  # AMP takes a GPU
    monkeypatch.setattr('stepnet_mm.config.use_amp', changed.append)
    tool(TOOL, classifier, '--work-dir', tmp_path / 'work', '--iterations', 2,
         '--out', tmp_path / 'new/time.json', '--amp', '--cfg-options',
         'resume=True')
    said = capsys.readouterr().out
    found = json.loads((tmp_path / 'new/time.json').read_text())
    assert found['iterations'] == 4 and found['timed'] == 2
    assert found['batch_size'] == 4 and found['amp'] and len(changed) == 1
    assert found['options']['resume'] is True
    assert found['seconds'] == pytest.approx(
        4 * found['iteration'] + found['validations'] * found['validation'])
    assert 'others were at work on this machine (load 1000.0, ' in said
    assert 'mean of 2; 4 iterations: 0:00:' in said
    assert 'validation: 0:00:' in said and '\nin all: 0:00:' in said
    assert found['device'] == 'cpu' and found['versions']['torch'] in said
    assert not (tmp_path / 'work').exists()
    with pytest.raises(FileNotFoundError, match='gone'):
        tool(TOOL, classifier, '--data-root', tmp_path / 'gone')
