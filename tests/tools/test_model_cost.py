import re

import pytest
from mmengine.config import Config
from model_cost import image_size

from stepnet_mm.launch.entry import build_model

TOOL = 'analysis/model_cost'


def counts(printed, line):
    """Parameters and FLOPs on the line that begins so."""
    found = re.search(rf'^{line}: ([\d,]+) parameters, ([\d,]+) FLOPs',
                      printed, re.M)
    return [int(number.replace(',', '')) for number in found.groups()]


@pytest.mark.core
def test_a_classifier_by_hand(printed, classifier):
    """The counts are of one image, whatever the batch that is timed."""
    found = printed(
        TOOL, classifier, '--image-size', 32, 32, '--batch-size', 2,
        '--cfg-options', 'model.backbone.init_cfg.type=Pretrained',
        'model.backbone.init_cfg.checkpoint=nowhere.pth')
    assert 'ImageClassifier, backbone StepResNet, 1 x 3 x 32 x 32' in found
    assert 'latency of 2 x 3 x 32 x 32 torch.float32, cpu' in found
    # In every block with an identity shortcut: 6C parameters, 2C FLOPs.
    channels = 2 * 8 + 16 + 32 + 64
    assert counts(found, 'steps') == [6 * channels, 2 * channels]
    assert '5 StepAdaptor' in found
    # A 7x7 convolution of stride 2 to 8 channels.
    assert re.search(r'backbone.conv1 .* 1.176K .* 0.301M ', found)
    assert re.search('operators not counted: .*sum.*sigmoid', found)


@pytest.mark.long
@pytest.mark.core
def test_a_detector(printed, detector):
    found = printed(TOOL, detector, '--image-size', 90, 64)
    assert 'FasterRCNN, backbone StepResNet, 1 x 3 x 96 x 64' in found
    model = build_model(Config.fromfile(detector), start=False)
    assert counts(found, 'total')[0] == sum(
        p.numel() for p in model.parameters())


@pytest.mark.parametrize('loaders, expected', [
    (dict(test=[dict(type='ResizeEdge', scale=256), dict(crop_size=192)]),
     (192, 192)),
    (dict(val=[dict(type='Resize', scale=(1333, 800)), {}]), (800, 1333)),
    ({}, (224, 224))])
def test_the_size_comes_from_the_config(loaders, expected):
    assert image_size(Config({
        f'{name}_dataloader': dict(dataset=dict(
            type='Any', dataset=dict(pipeline=pipeline)))
        for name, pipeline in loaders.items()})) == expected
