"""Accuracy on disturbed images, against the formulas written out."""
import json
from types import SimpleNamespace

import pytest
import torch
from mmengine.config import Config

from stepnet_mm.launch.entry import build_model

TOOL = 'analysis/robustness'
MEAN, STD = 120., 60.


class Tiny(torch.nn.Module):
    """Three classes from images of 1 x 2 x 2 pixels."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(3, 4))

    def data_preprocessor(self, data):
        return dict(inputs=(data['inputs'] - MEAN) / STD)

    def forward(self, inputs, mode):
        assert mode == 'tensor'
        return inputs.flatten(1) @ self.weight.T


def scores_of(model, pixels):
    return ((pixels - MEAN) / STD).flatten() @ model.weight.detach().T


def disturbed(model, pixels, label, noise):
    """Name of a variant -> an image, of which the slope is written out."""
    error = scores_of(model, pixels).softmax(0)
    error[label] -= 1
    sign = (error @ model.weight.detach() / STD).sign().view_as(pixels)
    return {'clean': pixels,
            **{f'noise_{s}': pixels + 255 * s * noise for s in (.02, .05, .1)},
            **{f'fgsm_{e}': pixels + e * sign for e in (1, 2)}}


def test_the_formulas(load_tool):
    model, right = Tiny(), {}
    images = torch.randint(0, 256, (2, 300, 1, 2, 2), dtype=torch.uint8)
    labels = torch.randint(0, 3, (2, 300))
    generator = torch.Generator().manual_seed(0)
    for batch, own in zip(images, labels):
        noise = torch.randn(batch.shape, generator=generator)
        for pixels, label, n in zip(batch.float(), own, noise):
            for name, image in disturbed(model, pixels, label, n).items():
                found = scores_of(model, image.clamp(0, 255)).argmax()
                right[name] = right.get(name, 0) + (found == label).item()
    top1 = load_tool(TOOL).top1_of(model, [dict(
        inputs=[*batch], data_samples=[
            SimpleNamespace(gt_label=label[None]) for label in own])
        for batch, own in zip(images, labels)], 'cpu')
    assert top1 == pytest.approx({k: v / 6 for k, v in right.items()})
    assert len({*top1.values()}) == 6  # no two variants are one
    assert top1['clean'] > top1['fgsm_1'] > top1['fgsm_2']


@pytest.mark.long
def test_a_network(tool, classifier, tmp_path):
    pytest.importorskip('mmpretrain')
    weights = tmp_path / 'epoch_2.pth'
    torch.save(dict(state_dict=build_model(
        Config.fromfile(classifier)).state_dict()), weights)
    tool(TOOL, classifier, weights, '--num-samples', 6)
    found = json.loads((tmp_path / 'epoch_2_robustness.json').read_text())
    assert found['images'] == 6 and [*found['top1']] == [
        'clean', 'noise_0.02', 'noise_0.05', 'noise_0.1', 'fgsm_1', 'fgsm_2']
    assert all(0 <= value <= 100 for value in found['top1'].values())


def test_a_detector_is_refused(tool, detector, tmp_path):
    pytest.importorskip('mmdet')
    with pytest.raises(ValueError, match="default_scope: .*got 'mmdet'"):
        tool(TOOL, detector[0], tmp_path / 'none.pth',
             '--out', tmp_path / 'none.json', '--work-dir', tmp_path)
