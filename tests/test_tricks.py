"""Each trick of Fig. 8 changes what it must in a training."""
import json
import math
import re
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from mmengine.dataset import Compose
from mmengine.registry import MODELS, init_default_scope

pytest.importorskip('mmpretrain')
from mmpretrain.datasets import CIFAR10  # noqa: E402

from stepnet_mm import config_path  # noqa: E402
from stepnet_mm.config import harden, read_config, set_data_root  # noqa: E402
from stepnet_mm.launch.entry import build_model, build_runner  # noqa: E402
from stepnet_mm.recording import TrajectoryRecorder  # noqa: E402
from stepnet_mm.stiffness import total_neural_stiffness  # noqa: E402

# One worker, which makes the images once.
pytestmark = pytest.mark.xdist_group('tricks')

def load(trick, work_dir=None, dataset='cifar10', **options):
    """A config with two measured blocks in each stage; one has no TNS."""
    name = '_'.join(filter(None, ('resnet164_stepnet', trick, dataset)))
    cfg = read_config(config_path(name), str(work_dir), {
        'model.backbone.depth': 29, **options})
    init_default_scope('mmpretrain')
    return cfg


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    """A root of CIFAR-10, two images a class to train and one to test."""
    root = tmp_path_factory.mktemp('cifar10')
    rng = np.random.default_rng(0)
    for name in CIFAR10.METAINFO['classes']:
        for path in ('train/0', 'train/1', 'test/0'):
            file = root / path.replace('/', f'/{name}/')
            file.parent.mkdir(parents=True, exist_ok=True)
            cv2.imwrite(f'{file}.png', rng.integers(0, 256, (32, 32, 3)))
    return str(root)


@pytest.fixture
def train(data, tmp_path):
    """train('ema', key=value): two epochs of two iterations; the work dir."""

    def train(trick, work_dir='work', epochs=2, **options):
        cfg = load(trick, tmp_path / work_dir, **{
            'train_dataloader.batch_size': 10,
            'train_dataloader.num_workers': 0, 'randomness.seed': 0,
            'val_dataloader.num_workers': 0, 'train_cfg.max_epochs': epochs,
            'default_hooks.logger.interval': 1,
            'default_hooks.checkpoint.save_best': None, **options})
        set_data_root(cfg, data)
        cfg.visualizer.vis_backends = [dict(type='LocalVisBackend')]
        build_runner(harden(cfg)).train()
        return tmp_path / work_dir

    return train


def logged(work_dir, key):
    lines = ''.join(path.read_text() for path in sorted(
        work_dir.glob('*/vis_data/s*.json'))).splitlines()
    return [row[key] for row in map(json.loads, lines) if key in row]


@pytest.mark.core
def test_it_trains(train):
    losses = logged(train('mixup', epochs=1), 'loss')
    assert len(losses) == 2 and all(map(math.isfinite, losses))


def test_a_trick_goes_on_top_of_a_config_of_mmpretrain(tmp_path):
    page = Path(config_path('mixup')).parents[2] / 'README.md'
    text, = re.findall('```python\n(.*?)```', page.read_text(), re.S)
    path = tmp_path / 'theirs.py'
    path.write_text(text)
    cfg = read_config(str(path))
    assert cfg.model.backbone.type == 'ResNet_CIFAR'
    assert cfg.model.train_cfg == dict(
        augments=[dict(type='Mixup', alpha=1.)])


def test_smoothed_labels_have_the_classes_of_the_scores():
    loss = MODELS.build(
        load('label_smoothing', dataset='cifar100').model.head.loss)
    scores, labels = torch.randn(4, 100), torch.arange(4)
    torch.testing.assert_close(
        loss(scores, labels), F.cross_entropy(scores, labels,
                                              label_smoothing=.1))


def augmented(trick, value, count=100, dataset='cifar10'):
    """An image of one value through the pipeline, (count, 32, 32, 3)."""
    np.random.seed(0)
    pipeline = Compose(
        load(trick, dataset=dataset).train_dataloader.dataset.pipeline)
    image = np.full((32, 32, 3), value, 'uint8')
    images = [pipeline(dict(img=image.copy(), gt_label=0))['inputs']
              for _ in range(count)]
    return torch.stack(images).permute(0, 2, 3, 1).numpy()


@pytest.mark.parametrize('dataset, edge', [('cifar10', 16), ('cifar100', 8)])
def test_squares_of_the_mean_colour_are_cut_out(dataset, edge):
    cfg = load('cutout', dataset=dataset)
    mean = np.round(cfg.data_preprocessor.mean)
    images = augmented('cutout', 200, dataset=dataset)
    area = (images == mean).all(3).sum((1, 2))
    assert area.max() == edge * edge and area.min() >= edge * edge / 4


@pytest.mark.parametrize('trick', ['random_erasing', 'auto_augment'])
def test_more_of_an_image_changes_than_its_padded_edges(trick):
    inner = augmented(trick, 200)[:, 4:-4, 4:-4]
    assert (inner != 200).any((1, 2, 3)).sum() > 20
    assert not (augmented(None, 200)[:, 4:-4, 4:-4] != 200).any()


@pytest.mark.core
def test_the_policy_is_that_of_another_implementation():
    transforms = pytest.importorskip('torchvision.transforms')
    theirs = transforms.AutoAugment(transforms.AutoAugmentPolicy.CIFAR10)
    ours = load('auto_augment').auto_augment.policies
    assert [[operation(**one) for one in pair] for pair in ours] == [
        list(pair) for pair in theirs.policies]


def operation(type, prob, direction=None, **magnitude):
    """The name, probability and level as torchvision has them."""
    axis = dict(horizontal='X', vertical='Y').get(direction, '')
    name = type.removesuffix('Transform') + axis
    if not magnitude:
        return name, prob, None
    value, = magnitude.values()
    nine = dict(Shear=.3, Translate=150 / 331, Rotate=30, Posterize=-4,
                Solarize=-256).get(type, .9)
    zero = dict(Posterize=8, Solarize=256).get(type, 0)
    level = 9 * (value - zero) / nine
    return name, prob, round(level)


@pytest.mark.long
def test_averaged_weights_are_evaluated_and_the_training_is_as_without(
        train, data):
    measured = {'custom_hooks.0.interval': 1}
    work = train('ema', **measured, **{
        'custom_hooks.1.momentum': .3,
        'val_evaluator': [dict(type='Accuracy', topk=(1, )),
                          dict(type='TNSMetric')],
        'default_hooks.checkpoint.save_best': 'accuracy/top1'})
    best, = work.glob('best_*.pth')
    for path in (work / 'epoch_2.pth', best):
        saved = torch.load(path, weights_only=False)
        name = 'backbone.layer1.1.conv1.weight'
        other = saved['ema_state_dict'][f'module.{name}']
        assert not saved['state_dict'][name].equal(other)
        epoch = 2 if path != best else saved['meta']['epoch']
        assert logged(work, 'stiffness_eval/tns')[epoch - 1] == pytest.approx(
            tns_of(path, data), rel=1e-4)
    alone = train(None, 'alone', **measured)
    for key in ('loss', 'stiffness/tns'):
        assert len(logged(alone, key)) == 4 and min(logged(alone, key)) > 0
        assert logged(work, key) == logged(alone, key)


def tns_of(checkpoint, data):
    """TNS of a checkpoint on the images to test."""
    cfg = load('ema')
    model = build_model(cfg, str(checkpoint))
    images = [cv2.imread(str(path))[..., ::-1].copy()
              for path in Path(data, 'test').glob('*/*.png')]
    batch = torch.tensor(np.stack(images)).permute(0, 3, 1, 2)
    inputs = model.data_preprocessor(dict(inputs=batch))['inputs']
    with TrajectoryRecorder(model) as recorder, torch.no_grad():
        model(inputs, mode='tensor')
    return total_neural_stiffness(recorder.nsi, recorder.stage).mean().item()
