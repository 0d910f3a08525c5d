"""Accuracy on disturbed images, against the formulas written out."""
import json

import pytest
import torch

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


class Sample:

    def __init__(self, label):
        self.gt_label = torch.tensor([label])


def scores(weight, pixels):
    """Of one image, a list of 4 pixels."""
    return [sum(w * (p - MEAN) / STD for w, p in zip(row, pixels))
            for row in weight]


def disturbed(weight, pixels, label, noise):
    """Name of a variant -> its pixels, one after the other."""
    exps = [torch.tensor(s).exp().item() for s in scores(weight, pixels)]
    errors = [e / sum(exps) - (k == label) for k, e in enumerate(exps)]
    slope = [sum(error * row[i] / STD for error, row in zip(errors, weight))
             for i in range(4)]
    found = dict(clean=pixels)
    for sigma in (.02, .05, .1):
        found[f'noise_{sigma}'] = [p + 255 * sigma * n
                                   for p, n in zip(pixels, noise)]
    for epsilon in (1, 2):
        found[f'fgsm_{epsilon}'] = [p + epsilon * (1 if s > 0 else -1)
                                    for p, s in zip(pixels, slope)]
    return {name: [min(max(p, 0), 255) for p in values]
            for name, values in found.items()}


def test_the_formulas(load_tool):
    model = Tiny()
    images = torch.randint(0, 256, (2, 300, 1, 2, 2), dtype=torch.uint8)
    labels = [[i % 3 for i in range(300)], [i % 2 for i in range(300)]]
    batches = [dict(inputs=[*images[k]],
                    data_samples=[*map(Sample, labels[k])]) for k in (0, 1)]
    generator, right = torch.Generator().manual_seed(0), {}
    weight = model.weight.tolist()
    for batch, own in zip(images, labels):
        noise = torch.randn(batch.shape, generator=generator)
        for pixels, label, n in zip(batch.flatten(1).tolist(), own,
                                    noise.flatten(1).tolist()):
            for name, values in disturbed(weight, pixels, label, n).items():
                found = scores(weight, values)
                right[name] = right.get(name, 0) + (
                    found.index(max(found)) == label)
    top1 = load_tool(TOOL).top1_of(model, batches, 'cpu')
    assert top1 == pytest.approx({k: v / 6 for k, v in right.items()})
    assert len({*top1.values()}) == 6  # no two variants are one
    assert top1['clean'] > top1['fgsm_1'] > top1['fgsm_2']


@pytest.mark.long
def test_a_trained_network(tool, classifier, tmp_path, capsys):
    pytest.importorskip('mmpretrain')
    tool('train', classifier, '--work-dir', tmp_path / 'w')
    tool(TOOL, classifier, tmp_path / 'w/epoch_2.pth', '--num-samples', 6)
    path = tmp_path / 'w/epoch_2_robustness.json'
    found = json.loads(path.read_text())
    assert found['images'] == 6 and [*found['top1']] == [
        'clean', 'noise_0.02', 'noise_0.05', 'noise_0.1', 'fgsm_1', 'fgsm_2']
    assert all(0 <= value <= 100 for value in found['top1'].values())
    assert f'all numbers: {path}' in capsys.readouterr().out


def test_a_detector_is_refused(tool, detector, tmp_path):
    pytest.importorskip('mmdet')
    with pytest.raises(ValueError, match="default_scope: .*got 'mmdet'"):
        tool(TOOL, detector[0], tmp_path / 'none.pth',
             '--out', tmp_path / 'none.json', '--work-dir', tmp_path)
