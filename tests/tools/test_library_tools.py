"""The libraries' own tools, inferencers and functions, with our backbones."""
import importlib.util
import runpy
import sys
from functools import partial
from pathlib import Path

import fresh
import numpy as np
import pytest
import torch
from mmengine.runner import Runner

from stepnet_mm.steps import StepAdaptor


def path_of(library, name):
    """A tool that came with a library."""
    pytest.importorskip(library)
    root = Path(importlib.util.find_spec(library).origin).parent
    path = root / '.mim' / 'tools' / f'{name}.py'
    if not path.exists():
        pytest.skip(f'this installation of {library} has no tools/{name}.py')
    return path


@pytest.fixture
def their(monkeypatch):
    """their('mmdet', 'train', 'config.py', '--work-dir', folder)"""

    def run(library, name, *arguments):
        path = path_of(library, name)
        monkeypatch.setattr(sys, 'argv', [path.name, *map(str, arguments)])
        runpy.run_path(str(path), run_name='__main__')

    return run


def check_steps(model, checkpoint):
    """The model has the step sizes of the checkpoint."""
    steps = model.backbone.steps()
    assert steps and all(isinstance(step, StepAdaptor) for step in steps)
    saved = torch.load(checkpoint, weights_only=False)['state_dict']
    for key, value in model.state_dict().items():
        assert torch.equal(value, saved[key]), key


def train_with_theirs(path, config, work_dir):
    sys.argv = [path.name, str(config), '--work-dir', str(work_dir)]
    runpy.run_path(str(path), run_name='__main__')


@pytest.mark.core
def test_mmdet(their, detector, tmp_path):
    """Its training is in a process that has not imported the package."""
    work = tmp_path / 'work'
    fresh.printed_by(tmp_path, train_with_theirs, path_of('mmdet', 'train'),
                     detector, work)
    checkpoint = work / 'iter_4.pth'
    their('mmdet', 'test', detector, checkpoint, '--work-dir',
          tmp_path / 'test', '--out', tmp_path / 'all.pkl')
    assert (tmp_path / 'all.pkl').stat().st_size > 0

    from mmdet.apis import DetInferencer, inference_detector, init_detector
    image = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    model = init_detector(str(detector), str(checkpoint), device='cpu')
    check_steps(model, checkpoint)
    found = inference_detector(model, image).pred_instances
    # The checkpoint alone is enough: its config is in it.
    inferencer = DetInferencer(weights=str(checkpoint), device='cpu')
    check_steps(inferencer.model, checkpoint)
    given = inferencer(image, no_save_vis=True)['predictions'][0]
    assert len(found) and given['scores'] == pytest.approx(
        found.scores.tolist())


@pytest.mark.core
def test_mmpretrain(their, classifier, tmp_path):
    work = tmp_path / 'work'
    their('mmpretrain', 'train', classifier, '--work-dir', work)
    checkpoint = work / 'epoch_2.pth'
    their('mmpretrain', 'test', classifier, checkpoint, '--work-dir',
          tmp_path / 'test', '--out', tmp_path / 'all.pkl')
    assert (tmp_path / 'all.pkl').stat().st_size > 0

    from mmpretrain import ImageClassificationInferencer, get_model
    image = np.random.default_rng(0).integers(0, 256, (40, 40, 3), np.uint8)
    check_steps(get_model(str(classifier), pretrained=str(checkpoint)),
                checkpoint)
    inferencer = ImageClassificationInferencer(
        str(classifier), pretrained=str(checkpoint), device='cpu',
        classes=['dark', 'light'])
    check_steps(inferencer.model, checkpoint)
    assert inferencer(image)[0]['pred_class'] in ('dark', 'light')


class Built(Exception):
    """Has the config of the Runner that was to be built."""


@pytest.mark.core
@pytest.mark.parametrize('library, made', [
    ('mmdet', 'detector'), ('mmpretrain', 'classifier')])
def test_the_default_test_time_augmentation(
        their, tool, monkeypatch, tmp_path, library, made, request):
    def from_cfg(cfg):
        raise Built(cfg)

    monkeypatch.setattr(Runner, 'from_cfg', from_cfg)
    found = set()
    for run in (partial(their, library), tool):
        with pytest.raises(Built) as built:
            run('test', request.getfixturevalue(made), 'a.pth', '--tta',
                '--work-dir', tmp_path / 'work')
        cfg, = built.value.args
        assert 'TTA' in cfg.model.type
        found.add(f'{cfg.model} {cfg.test_dataloader.dataset.pipeline}'
                  .replace(f'{library}.', ''))
    assert len(found) == 1
