"""Accuracy on disturbed images, against the formulas written out."""
import json
from types import SimpleNamespace

import pytest
import torch
from robustness import logits_of, top1_of

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


def test_the_formulas():
    model, generator = Tiny(), torch.Generator().manual_seed(0)
    weight = model.weight.detach()
    images = torch.randint(0, 256, (600, 1, 2, 2), dtype=torch.uint8)
    labels = torch.randint(0, 3, (600, ))
    found = top1_of(model, [dict(
        inputs=[*batch], data_samples=[
            SimpleNamespace(gt_label=label[None]) for label in own])
        for batch, own in zip(images.split(300), labels.split(300))], 'cpu')

    def scores_of(pixels):
        return ((pixels - MEAN) / STD).flatten(1) @ weight.T

    noise = torch.cat([torch.randn(300, 1, 2, 2, generator=generator)
                       for _ in range(2)])
    pixels = images.float()
    error = scores_of(pixels).softmax(1) - torch.eye(3)[labels]
    sign = (error @ weight / STD).sign().view_as(pixels)  # of the slope
    disturbed = {
        'clean': pixels,
        **{f'noise_{s}': pixels + 255 * s * noise for s in (.02, .05, .1)},
        **{f'fgsm_{e}': pixels + e * sign for e in (1, 2)}}
    assert found == pytest.approx({
        name: 100 * (scores_of(own.clamp(0, 255)).argmax(1) == labels)
        .float().mean().item() for name, own in disturbed.items()})
    assert found['clean'] > found['fgsm_1'] > found['fgsm_2']
    assert len({*found.values()}) == 6  # no two variants are one


def test_a_model_without_logits():
    model = Tiny()
    model.forward = lambda inputs, mode: (inputs, )
    with pytest.raises(ValueError, match='model.type: .*Tiny.*a tuple'):
        logits_of(model, torch.ones(1, 1, 2, 2))


def test_a_network(tool, classifier, untrained, tmp_path):
    tool(TOOL, classifier, untrained, '--num-samples', 6)
    found = json.loads((tmp_path / 'epoch_2_robustness.json').read_text())
    assert found['images'] == 6 and len(found['top1']) == 6
