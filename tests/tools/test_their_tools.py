"""The libraries' own tools, inferencers and functions, with our backbones."""
import importlib.util
import runpy
import sys
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
def test_mmdet(their, small_detector, tmp_path):
    """Its training is in a process that has not imported the package."""
    work = tmp_path / 'work'
    fresh.printed_by(tmp_path, train_with_theirs, path_of('mmdet', 'train'),
                     small_detector, work)
    checkpoint = work / 'iter_2.pth'
    their('mmdet', 'test', small_detector, checkpoint, '--work-dir',
          tmp_path / 'test', '--out', tmp_path / 'all.pkl')
    assert (tmp_path / 'all.pkl').stat().st_size > 0

    from mmdet.apis import DetInferencer, inference_detector, init_detector
    image = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    model = init_detector(str(small_detector), str(checkpoint), device='cpu')
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


@pytest.fixture
def configs(their, tool, monkeypatch, tmp_path):
    """configs('mmdet', 'test', config, ...): that of their tool, and ours"""

    def from_cfg(cfg):
        raise Built(cfg)

    def run(library, name, *arguments):
        monkeypatch.setattr(Runner, 'from_cfg', from_cfg)
        found = []
        for call in (lambda *args: their(library, *args), tool):
            with pytest.raises(Built) as built:
                call(name, *arguments, '--work-dir', tmp_path / 'work')
            found.append(built.value.args[0])
        return found

    return run


@pytest.mark.core
@pytest.mark.parametrize('library, made', [
    ('mmdet', 'small_detector'), ('mmpretrain', 'classifier')])
def test_the_default_test_time_augmentation(configs, library, made, request):
    stock, ours = configs(library, 'test', request.getfixturevalue(made),
                          'a.pth', '--tta')
    assert 'TTA' in stock.model.type
    for key in ('model', 'test_dataloader.dataset.pipeline'):
        texts = [str(value_at(cfg, key)).replace(f'{library}.', '')
                 for cfg in (stock, ours)]
        assert texts[0] == texts[1]


def test_the_options_of_mmpretrains_train(configs, classifier):
    stock, ours = configs('mmpretrain', 'train', classifier, '--no-validate',
                          '--no-persistent-workers')
    for key in ('val_cfg', 'val_dataloader', 'val_evaluator',
                'train_dataloader.persistent_workers'):
        assert value_at(stock, key) == value_at(ours, key), key


def value_at(cfg, key):
    for part in key.split('.'):
        cfg = cfg[part]
    return cfg
