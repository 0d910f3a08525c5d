import builtins
import json
import os
import pickle
import runpy
import signal
import sys
from pathlib import Path

import fresh
import pytest
import torch
from resume_run import assert_same
from study_outcome import trained_with

from stepnet_mm.safe_loading.loaders import UnsafeCheckpointError
from stepnet_mm.utils import provenance
from stepnet_mm.version import __version__


class Malicious:

    def __reduce__(self):
        return os.mkdir, ('it_ran', )


def rows(work_dir):
    return [
        json.loads(line)
        for path in sorted(work_dir.glob('*/vis_data/s*.json'))
        for line in path.read_text().splitlines()
    ]


def metrics(work_dir):
    return {key for row in rows(work_dir) for key in row}


def measured(work_dir):
    return [row['step'] for row in rows(work_dir) if 'stiffness/tns' in row]


def train_without_posix(root, config, work):
    """Where signals to a process, and file locks, are not to be had."""
    import cv2  # noqa: F401
    import matplotlib.pyplot  # noqa: F401
    import mmengine.runner  # noqa: F401
    import mmpretrain.datasets
    import mmpretrain.models  # noqa: F401
    import tensorboard  # noqa: F401
    for name in ('pthread_sigmask', 'sigwaitinfo', 'SIGUSR1', 'SIGUSR2',
                 'setitimer', 'SIGALRM'):
        delattr(signal, name)
    find, read = builtins.__import__, Path.read_text

    def no_import(name, where=None, *args, **kwargs):
        if name in ('fcntl', 'resource') and (
                where['__name__'].startswith('stepnet_mm')):
            raise ModuleNotFoundError(name)
        return find(name, where, *args, **kwargs)

    def no_proc(path, *args, **kwargs):
        if str(path).startswith('/proc'):
            raise FileNotFoundError(path)
        return read(path, *args, **kwargs)

    builtins.__import__, Path.read_text = no_import, no_proc
    sys.argv = ['train.py', str(config), '--work-dir', str(work)]
    runpy.run_path(str(root / 'tools/train.py'), run_name='__main__')


@pytest.mark.long
def test_a_system_without_posix_signals_and_locks(classifier, tmp_path,
                                                  request):
    work = tmp_path / 'work'
    fresh.printed_by(tmp_path, train_without_posix, request.config.rootpath,
                     classifier, work)
    log, = work.glob('*/*.log')
    assert 'PreemptionHook is off' in log.read_text()
    assert (work / 'epoch_2.pth').is_file() and measured(work) == [1, 2, 3, 4]


def go_back(work, last, earlier):
    """As after a kill between two checkpoints; gives the last one's state."""
    state = torch.load(work / last, weights_only=False)
    (work / last).unlink()
    (work / 'last_checkpoint').write_text(str(work / earlier))
    return state


def assert_same_end(whole, path):
    end = torch.load(path, weights_only=False)
    for key in ('state_dict', 'optimizer', 'param_schedulers'):
        assert_same(whole[key], end[key], key)


@pytest.mark.core
def test_a_detector_trains_resumes_and_is_tested(tool, detector, tmp_path):
    config, data = detector
    work = tmp_path / 'work'
    common = (config, '--work-dir', work, '--data-root', data)
    tool('train', *common)
    assert 'coco/bbox_mAP_50' in metrics(work)
    assert measured(work) == [2, 4]
    log, = work.glob('*/*.log')
    assert ('train_cfg: ResumableIterBasedTrainLoop replaces'
            in log.read_text())

    whole = go_back(work, 'iter_4.pth', 'iter_2.pth')
    tool('train', *common, '--resume')
    assert measured(work) == [2, 4, 4]
    assert_same_end(whole, work / 'iter_4.pth')

    # With the config of a training that was resumed: no ``resume`` here.
    tool('test', config, work / 'iter_4.pth', '--work-dir', tmp_path / 'test',
         '--data-root', data, '--show-dir', tmp_path / 'drawn', '--out',
         tmp_path / 'all.pkl', '--cfg-options', 'resume=True',
         'auto_resume=True')
    assert len(list((tmp_path / 'drawn').rglob('*.*'))) == 3
    predicted = pickle.loads((tmp_path / 'all.pkl').read_bytes())
    assert len(predicted) == 3
    assert all('pred_instances' in row and 'gt_instances' not in row
               for row in predicted)


@pytest.mark.core
def test_a_classifier_trains_and_is_tested(
        tool, classifier, tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, 'revision', lambda: 'abc-dirty')
    work = tmp_path / 'work'
    tool('train', classifier, '--work-dir', work)
    assert 'accuracy/top1' in metrics(work)
    assert measured(work) == [1, 2, 3, 4]
    log, = work.glob('*/*.log')
    assert trained_with(work) == dict(
        commit='abc-dirty', device='cpu', machine=provenance.machine())
    assert f'INFO - stepnet_mm: {__version__}, abc-dirty\n' in (
        log.read_text())
    tool('test', classifier, work / 'epoch_2.pth', '--work-dir',
         tmp_path / 'test', '--show-dir', tmp_path / 'drawn')
    assert list((tmp_path / 'drawn').rglob('*.png'))


MIXED = """
_base_ = '{base}'
model = dict(train_cfg=dict(augments=[
    dict(type='Mixup', alpha=0.8), dict(type='CutMix', alpha=1.0)]))
train_dataloader = dict(
    num_workers=2, persistent_workers=True,
    sampler=dict(type='RepeatAugSampler', shuffle=True),
    dataset=dict(pipeline=[
        dict(type='LoadImageFromFile'),
        dict(type='RandomResizedCrop', scale=32),
        dict(type='RandAugment', policies='timm_increasing', num_policies=2,
             total_level=10, magnitude_level=9, magnitude_std=0.5),
        dict(type='RandomErasing', erase_prob=0.5),
        dict(type='PackInputs')]))
default_hooks = dict(checkpoint=dict(
    by_epoch=False, interval=1, max_keep_ckpts=-1))
"""


@pytest.mark.long
def test_mixed_and_augmented_images_come_again(tool, classifier, tmp_path):
    """Mid-epoch, with workers, mmpretrain's Mixup, CutMix, RandAugment."""
    path = tmp_path / 'mixed.py'
    path.write_text(MIXED.format(base=classifier))
    work = tmp_path / 'work'
    tool('train', path, '--work-dir', work)
    whole = go_back(work, 'iter_4.pth', 'iter_3.pth')
    tool('train', path, '--work-dir', work, '--resume',
         '--cfg-options', 'train_dataloader.num_workers=1')
    assert_same_end(whole, work / 'iter_4.pth')
    with pytest.raises(AssertionError):
        assert_same_end(whole, work / 'iter_3.pth')


def test_a_malicious_checkpoint_does_not_run(tool, detector, tmp_path):
    config, data = detector
    bad = tmp_path / 'bad.pth'
    torch.save(dict(state_dict={}, extra=Malicious()), bad)
    with pytest.raises(UnsafeCheckpointError, match='mkdir'):
        tool('train', config, '--work-dir', tmp_path / 'work', '--data-root',
             data, '--resume', bad)
    assert not os.path.exists('it_ran')


def test_what_is_tested_is_whole(tool, classifier, tmp_path):
    """All weights, and all images."""
    torch.save(dict(state_dict={}), tmp_path / 'other.pth')
    broken = tmp_path / 'images/val/dark/1.jpg'
    broken.write_bytes(b'')
    common = ('test', classifier, tmp_path / 'other.pth', '--work-dir',
              tmp_path / 'work')
    with pytest.raises(ValueError, match='CHECKPOINT: expected weights for '
                       'all of ImageClassifier'):
        tool(*common)
    with pytest.raises(ValueError) as error:
        tool(*common, '--allow-missing')
    assert f'{broken}: expected an image' in (
        str(error.value).splitlines()[-1])
