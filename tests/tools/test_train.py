import json
import pickle

import pytest
import torch
from resume_run import assert_same
from study_outcome import trained_with

from stepnet_mm.utils import provenance
from stepnet_mm.version import __version__


def rows(work_dir):
    return [json.loads(line)
            for path in sorted(work_dir.glob('*/vis_data/s*.json'))
            for line in path.read_text().splitlines()]


def metrics(work_dir):
    return {key for row in rows(work_dir) for key in row}


def measured(work_dir):
    return [row['step'] for row in rows(work_dir) if 'stiffness/tns' in row]


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
    work = tmp_path / 'work'
    tool('train', detector, '--work-dir', work)
    assert 'coco/bbox_mAP_50' in metrics(work)
    assert measured(work) == [2, 4]

    whole = go_back(work, 'iter_4.pth', 'iter_2.pth')
    tool('train', detector, '--work-dir', work, '--resume')
    assert measured(work) == [2, 4, 4]
    assert_same_end(whole, work / 'iter_4.pth')

    # With the config of a training that was resumed: no ``resume`` here.
    tool('test', detector, work / 'iter_4.pth', '--work-dir',
         tmp_path / 'test', '--show-dir', tmp_path / 'drawn', '--out',
         tmp_path / 'all.pkl', '--cfg-options', 'resume=True',
         'auto_resume=True')
    assert len(list((tmp_path / 'drawn').rglob('*.*'))) == 3
    predicted = pickle.loads((tmp_path / 'all.pkl').read_bytes())
    assert len(predicted) == 3 and all(
        'pred_instances' in row for row in predicted)


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
