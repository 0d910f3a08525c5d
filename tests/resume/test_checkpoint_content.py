"""A training state: of plain types, and it deletes files of its run alone."""
from collections import defaultdict, deque
from datetime import date
from pathlib import Path

import numpy as np
import pytest
import torch
from mmengine.runner.checkpoint import CheckpointLoader
from resume_run import (
    AugmentedDataset,
    Stopped,
    checkpoints,
    resume_runner,
    warnings_of,
)

from stepnet_mm.resume.checkpoint_content import (
    CheckpointContentHook,
    add_content_hook,
)
from stepnet_mm.safe_loading.loaders import keep_own_files


def train(folder, kind='CheckpointHook', stop=None, note=None, **kwargs):
    """As tools/train.py does, whose Runner has the CheckpointContentHook."""
    hooks = [dict(type='StopHook', at=stop)] if stop else []
    runner = resume_runner(
        folder, hooks=hooks, interval=5, **kwargs,
        val_evaluator=dict(type='FallingMetric'),
        checkpoint=dict(type=kind, save_best='loss', rule='less'))
    add_content_hook(runner)
    runner.message_hub.update_info('noted', note)
    runner.train()
    *_, last = runner.hooks  # sees what the others add, and does it once
    assert [last] == [hook for hook in runner.hooks
                      if isinstance(hook, CheckpointContentHook)]
    return runner


def test_the_runs_own_are_found_and_go(tmp_path):
    """What another's state names stays."""
    with pytest.raises(Stopped):
        train(tmp_path / 'a', stop=13)
    assert (tmp_path / 'a/best_loss_iter_11.pth').is_file()
    last, dear = tmp_path / 'a/iter_11.pth', tmp_path / 'preempted_iter_1.pth'
    dear.touch()
    state = torch.load(last, weights_only=False)
    state['message_hub']['runtime_info'].update(
        cfg='model = dict(type="ReLU")', temporary_ckpt=str(dear))
    torch.save(state, last)
    runner = train(tmp_path / 'a', resume=True, load_from=str(last))
    assert checkpoints(tmp_path / 'a') == [
        'iter_30.pth', 'iter_33.pth', 'best_loss_iter_33.pth']
    assert dear.is_file()
    # Its own config, not the one that the checkpoint brought.
    assert runner.message_hub.get_info('cfg') == runner.cfg.pretty_text


def test_names_that_are_kept(tmp_path):
    for name in ('best_a.pth', 'preempted_iter_4.pth', 'other.pth'):
        (tmp_path / name).touch()
    (tmp_path / 'best_folder').mkdir()

    def kept(folder=str(tmp_path), **info):
        keep_own_files(dict(message_hub=dict(runtime_info=info)), folder)
        return info

    assert kept(best_ckpt_acc='/moved/best_a.pth', best_score=.5,
                temporary_ckpt='preempted_iter_4.pth',
                keep_ckpt_ids=[3, True, '4', None, 5]) == dict(
        best_ckpt_acc=str(tmp_path / 'best_a.pth'), best_score=.5,
        temporary_ckpt='preempted_iter_4.pth', keep_ckpt_ids=[3, 5])
    assert kept(keep_ckpt_ids='precious') == dict(keep_ckpt_ids=[])
    for name in ('other.pth', 'best_gone.pth', 'best_folder', 'best_a.pth/..',
                 '..', '../best_a.pth/.', '', ['x'], None):
        assert kept(best_ckpt=name, temporary_ckpt=name) == dict(
            best_ckpt=None, temporary_ckpt=None)
    remote = dict(best_ckpt='s3://bucket/run/best_a.pth')
    assert kept('s3://bucket/run', **remote) == remote


@pytest.mark.core
@pytest.mark.parametrize('kind', ['AtomicCheckpointHook', 'CheckpointHook'])
def test_texts_of_numpy_are_saved_as_plain(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(AugmentedDataset, 'metainfo', dict(
        classes=(np.str_('cat'), 'dog'), names=np.array(['a', 'b']),
        ages=np.array([1, 'b'], object)),
        raising=False)
    day = date(2026, 11, 28)
    note = dict(folder=Path('a/b'), names=[np.str_('c')],
                last=deque([1], maxlen=3), day=day, kinds=frozenset('a'))
    with pytest.raises(Stopped):
        train(tmp_path, kind, stop=7, note=note)
    loaded = CheckpointLoader.load_checkpoint(str(tmp_path / 'iter_5.pth'))
    noted = loaded['message_hub']['runtime_info']['noted']
    assert noted == dict(
        folder=Path('a/b'), names=['c'], last=deque([1]), day=day,
        kinds={'a'})
    assert noted['last'].maxlen == 3
    data = loaded['meta']['dataset_meta']
    assert data.pop('names').tolist() == ['a', 'b']
    assert data == dict(classes=('cat', 'dog'), ages=[1, 'b'])


class Own:
    """Of a type that no checkpoint may hold."""


def test_what_will_not_load_is_said(tmp_path):
    """Weights are left as they are, which torch itself saves."""
    runner = resume_runner(tmp_path)
    lines, save_plain = warnings_of(runner), (
        CheckpointContentHook().before_save_checkpoint)
    state = dict(state_dict=dict(w=torch.zeros(1), own=Path('a')),
                 message_hub=defaultdict(list, a=[Path('d')]))
    save_plain(runner, state)
    torch.save(state, tmp_path / 'a.pth')
    loaded = CheckpointLoader.load_checkpoint(f'{tmp_path}/a.pth')
    assert loaded == state and loaded['message_hub']['b'] == []
    assert not lines
    for key in ('message_hub', 'optimizer'):
        save_plain(runner, {key: dict(a=Own())})
        assert 'Own' in lines[-1] and key in lines[-1]
