"""The libraries' own tools, inferencers and functions, with our backbones."""
import importlib.util
import runpy
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import by_path
import fresh
import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.registry import HOOKS, DefaultScope
from mmengine.runner import Runner
from mmengine.visualization import Visualizer

from stepnet_mm.steps import StepAdaptor

IMAGE = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)


def path_of(library, name):
    """A tool that came with a library."""
    pytest.importorskip(library)
    root = Path(importlib.util.find_spec(library).origin).parent
    path = root / '.mim' / 'tools' / f'{name}.py'
    if not path.exists():
        pytest.skip(f'this installation of {library} has no tools/{name}.py')
    return path


def run(path, *arguments):
    sys.argv = [path.name, *map(str, arguments)]
    runpy.run_path(str(path), run_name='__main__')


def check_steps(model, checkpoint):
    """The model has the step sizes of the checkpoint."""
    steps = model.backbone.steps()
    assert steps and all(isinstance(step, StepAdaptor) for step in steps)
    saved = torch.load(checkpoint, weights_only=False)['state_dict']
    for key, value in model.state_dict().items():
        assert torch.equal(value, saved[key]), key


@pytest.fixture
def trained(monkeypatch, tmp_path):
    """trained('mmdet', config): a checkpoint of its train.py and test.py.

    The training is in a process that has not imported the package.
    """
    monkeypatch.setattr(sys, 'argv', [])

    def trained(library, config, last):
        fresh.printed_by(tmp_path, run, path_of(library, 'train'), config,
                         '--work-dir', tmp_path / 'work')
        checkpoint = tmp_path / 'work' / last
        run(path_of(library, 'test'), config, checkpoint, '--work-dir',
            tmp_path / 'test', '--out', tmp_path / 'all.pkl')
        assert (tmp_path / 'all.pkl').stat().st_size > 0
        return str(checkpoint)

    return trained


@pytest.mark.long
@pytest.mark.core
def test_mmdet(trained, detector):
    checkpoint = trained('mmdet', detector, 'iter_4.pth')
    from mmdet.apis import DetInferencer, inference_detector, init_detector
    model = init_detector(str(detector), checkpoint, device='cpu')
    check_steps(model, checkpoint)
    found = inference_detector(model, IMAGE).pred_instances
    # The checkpoint alone is enough: its config is in it.
    inferencer = DetInferencer(weights=checkpoint, device='cpu')
    check_steps(inferencer.model, checkpoint)
    given = inferencer(IMAGE, no_save_vis=True)['predictions'][0]
    assert len(found) and given['scores'] == pytest.approx(
        found.scores.tolist())


@pytest.mark.core
def test_mmpretrain(trained, classifier):
    checkpoint = trained('mmpretrain', classifier, 'epoch_2.pth')
    from mmpretrain import ImageClassificationInferencer, get_model
    check_steps(get_model(str(classifier), pretrained=checkpoint), checkpoint)
    inferencer = ImageClassificationInferencer(
        str(classifier), pretrained=checkpoint, device='cpu',
        classes=['dark', 'light'])
    check_steps(inferencer.model, checkpoint)
    assert inferencer(IMAGE)[0]['pred_class'] in ('dark', 'light')


@pytest.mark.core
def test_show_dir_of_mmseg_which_draws_where_its_visualizer_saves(tmp_path):
    """The other libraries' hooks draw in test_train.py."""
    pytest.importorskip('mmseg')
    cfg = Config(dict(
        default_scope='mmseg', visualizer=dict(type='Visualizer'),
        default_hooks=dict(visualization=dict(type='SegVisualizationHook'))))
    tool = by_path.load(Path(__file__).parents[2] / 'tools/test.py')
    tool.draw(cfg, SimpleNamespace(
        show=False, show_dir=tmp_path, wait_time=2, interval=1))
    Visualizer.get_instance('any')
    with DefaultScope.overwrite_default_scope('mmseg'):
        assert HOOKS.build(cfg.default_hooks.visualization).draw
    assert cfg.visualizer.save_dir == str(tmp_path)


@pytest.mark.core
@pytest.mark.parametrize('library, made', [
    ('mmdet', 'detector'), ('mmpretrain', 'classifier')])
def test_the_default_test_time_augmentation(
        tool, monkeypatch, tmp_path, library, made, request):
    monkeypatch.setattr(sys, 'argv', [])
    monkeypatch.setattr(Runner, 'from_cfg', from_cfg := MagicMock())
    found = set()
    for test in (partial(run, path_of(library, 'test')),
                 partial(tool, 'test')):
        test(request.getfixturevalue(made), 'a.pth', '--tta', '--work-dir',
             tmp_path / 'work')
        cfg, = from_cfg.call_args.args
        assert 'TTA' in cfg.model.type
        found.add(f'{cfg.model} {cfg.test_dataloader.dataset.pipeline}'
                  .replace(f'{library}.', ''))
    assert len(found) == 1
