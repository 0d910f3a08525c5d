"""What a run saves loads again, or the first save says that it will not."""
from collections import deque
from pathlib import Path

import numpy as np
import pytest
import torch
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from resume_run import AugmentedDataset, Stopped, resume_runner

from stepnet_mm.safe_loading import plain_state
from stepnet_mm.safe_loading.own_state import OwnStateHook


class Own:
    """Of a type that no checkpoint may hold."""


@HOOKS.register_module()
class NotingHook(Hook):
    """Keeps a value in the message hub."""

    def __init__(self, value):
        self.value = value

    def before_train(self, runner):
        runner.message_hub.update_info('noted', self.value)


@pytest.fixture
def metainfo(monkeypatch):
    monkeypatch.setattr(AugmentedDataset, 'metainfo', dict(
        classes=(np.str_('cat'), 'dog'), names=np.array(['a', 'b'])),
        raising=False)


def runner_of(folder, kind, value, stop=None, **kwargs):
    stops = [dict(type='StopHook', at=stop)] if stop else []
    runner = resume_runner(
        folder, interval=5, checkpoint=dict(type=kind),
        hooks=[dict(type='NotingHook', value=value), *stops], **kwargs)
    runner.register_hook(OwnStateHook())
    return runner


@pytest.mark.core
@pytest.mark.parametrize('kind', [
    'AtomicCheckpointHook',
    pytest.param('CheckpointHook', marks=pytest.mark.long)])
def test_paths_and_texts_of_numpy_resume(tmp_path, metainfo, kind):
    value = dict(folder=Path('a/b'), names=[np.str_('c')], last=deque([1]))
    with pytest.raises(Stopped):
        runner_of(tmp_path, kind, value, stop=13).train()
    resumed = runner_of(tmp_path, kind, 1, resume=True,
                        load_from=str(tmp_path / 'iter_10.pth'))
    noted = []
    resumed.register_hook(type('Look', (Hook, ), dict(
        priority='HIGHEST', before_train=lambda self, runner: noted.append(
            runner.message_hub.get_info('noted'))))())
    resumed.train()
    assert noted == [dict(folder='a/b', names=['c'], last=[1])]
    assert resumed.iter >= 33  # mmengine counts by epochs


def test_what_will_not_load_is_said_once_a_type(tmp_path, monkeypatch):
    runner, lines = resume_runner(tmp_path), []
    monkeypatch.setattr(runner.logger, 'warning', lines.append)
    weights = dict(state_dict=dict(w=torch.zeros(1), own=Path('a')),
                   optimizer=dict(name=np.str_('b')), message_hub=dict(a=1))
    plain_state.save_plain(runner, weights)
    assert not lines
    assert weights['state_dict']['own'] == 'a'
    assert type(weights['optimizer']['name']) is str
    for _ in range(2):
        plain_state.save_plain(runner, dict(message_hub=dict(a=Own())))
    line, = lines
    assert 'Own' in line and 'message_hub' in line
    plain_state.save_plain(runner, dict(optimizer=dict(a=NotingHook(1))))
    assert 'NotingHook' in lines[1] and 'optimizer' in lines[1]
