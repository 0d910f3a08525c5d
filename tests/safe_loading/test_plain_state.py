"""What a run saves loads again, or the first save says that it will not."""
from collections import deque
from pathlib import Path

import numpy as np
import pytest
import torch
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from resume_run import AugmentedDataset, Stopped, resume_runner

from stepnet_mm.safe_loading.loaders import load_from_local
from stepnet_mm.safe_loading.own_state import OwnStateHook, save_plain


class Own:
    """Of a type that no checkpoint may hold."""


@HOOKS.register_module()
class NotingHook(Hook):
    """Keeps a value in the message hub."""

    def __init__(self, value):
        self.value = value

    def before_train(self, runner):
        runner.message_hub.update_info('noted', self.value)


@pytest.mark.core
@pytest.mark.parametrize('kind', ['AtomicCheckpointHook', 'CheckpointHook'])
def test_paths_and_texts_of_numpy_are_saved_as_plain(tmp_path, monkeypatch,
                                                     kind):
    monkeypatch.setattr(AugmentedDataset, 'metainfo', dict(
        classes=(np.str_('cat'), 'dog'), names=np.array(['a', 'b'])),
        raising=False)
    value = dict(folder=Path('a/b'), names=[np.str_('c')], last=deque([1]))
    runner = resume_runner(tmp_path, interval=5, checkpoint=dict(type=kind),
                           hooks=[dict(type='NotingHook', value=value),
                                  dict(type='StopHook', at=7)])
    runner.register_hook(OwnStateHook())
    with pytest.raises(Stopped):
        runner.train()
    loaded = load_from_local(str(tmp_path / 'iter_5.pth'))
    assert loaded['message_hub']['runtime_info']['noted'] == dict(
        folder='a/b', names=['c'], last=[1])
    assert loaded['meta']['dataset_meta'] == dict(
        classes=('cat', 'dog'), names=['a', 'b'])


def test_what_will_not_load_is_said(tmp_path, monkeypatch):
    runner, lines = resume_runner(tmp_path), []
    monkeypatch.setattr(runner.logger, 'warning', lines.append)
    weights = dict(state_dict=dict(w=torch.zeros(1), own=Path('a')),
                   optimizer=dict(name=np.str_('b')), message_hub=dict(a=1))
    save_plain(runner, weights)
    assert not lines
    assert weights['state_dict']['own'] == 'a'
    assert type(weights['optimizer']['name']) is str
    save_plain(runner, dict(message_hub=dict(a=Own())))
    line, = lines
    assert 'Own' in line and 'message_hub' in line
    save_plain(runner, dict(optimizer=dict(a=NotingHook(1))))
    assert 'NotingHook' in lines[1] and 'optimizer' in lines[1]
